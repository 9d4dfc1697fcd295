"""layer_laws() and closures(): a test for each row of laws.bzl, closures.bzl."""

load("//tools/layering:closures.bzl", "CLOSURES")
load("//tools/layering:laws.bzl", "BESIDE_BUNDLE", "LAWS")

def layer_law(name, target, allowed):
    """A test that `target` reaches only `allowed` packages, and no CUDA.

    genquery follows both sides of a select, so the CPU build finds an edge that
    only another configuration would take.

    Args:
      name: the test's name.
      target: a label; the law holds for all that it depends on.
      allowed: packages of this repository, with all below them.
    """
    native.genquery(
        name = name + "_deps",
        expression = "deps(%s)" % target,
        scope = [target],
        testonly = True,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//tools:run_python.sh"],
        args = [
            "$(location //tools/layering:check_law.py)",
            target,
            "$(location :%s_deps)" % name,
        ] + allowed,
        data = [
            ":%s_deps" % name,
            "//tools/layering:check_law.py",
        ],
    )

def layer_laws():
    """The laws of all bundles, and of the libraries beside them."""
    for package in LAWS:
        layer_law(
            name = package + "_law",
            target = "//%s:%s" % (package, package),
            allowed = [package] + LAWS[package],
        )
    for label in BESIDE_BUNDLE:
        package = label[2:].split(":")[0].split("/")[0]
        layer_law(
            name = label[2:].replace("/", "_").replace(":", "_") + "_law",
            target = label,
            allowed = [package] + LAWS[package],
        )

def closures():
    """What each target of closures.bzl needs, against the table of docs/build.md."""
    for target in CLOSURES:
        name = target[2:].replace("/", "_").replace(":", "_") + "_closure"
        native.genquery(
            name = name + "_deps",
            expression = "deps(%s)" % target,
            # What a compiler or its precompiled header wants is no dependency.
            opts = ["--noimplicit_deps"],
            scope = [target],
            testonly = True,
        )
        native.sh_test(
            name = name + "_test",
            size = "small",
            srcs = ["//tools:run_python.sh"],
            args = [
                "$(location //tools/layering:check_closure.py)",
                target,
                "$(location :%s_deps)" % name,
                "$(location //docs:build.md)",
            ] + (CLOSURES[target] or []),
            data = [
                ":%s_deps" % name,
                "//docs:build.md",
                "//tools/layering:check_closure.py",
            ],
        )
