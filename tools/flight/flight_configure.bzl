"""@local_flight: Arrow and Arrow Flight, for --config=flight.

RILL_FLIGHT (set with --repo_env) picks it, and so whether there is Arrow:
  unset, "" or "none"  an empty stand-in; nothing of Arrow is looked for.
  "hermetic"           headers and libraries of the pinned wheel of
                       requirements.txt, through pip.
  a path               an installed Arrow, include/ and lib/, or the folder
                       `pyarrow` of a Python package.
"""

load("//tools:pip_wheels.bzl", "unpack_wheels")

# What Arrow targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "arrow")

cc_library(name = "flight")
"""

_ALIASES = """
package(default_visibility = ["//visibility:public"])
""" + "".join(["""
alias(
    name = "%s",
    actual = "@{wheels}//:%s",
)
""" % (target, target) for target in ["arrow", "flight"]])

# #include "arrow/api.h", "arrow/flight/api.h"
_HEADERS = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/arrow/**/*.h"]),
    includes = ["include"],
    visibility = ["//visibility:private"],
)
"""

_WHEELS = _HEADERS + """
cc_library(
    name = "arrow",
    deps = [
        ":headers",
        ":libarrow",
    ],
)

cc_library(
    name = "flight",
    deps = [
        ":arrow",
        ":libarrow_flight",
    ],
)

cc_import(
    name = "libarrow",
    shared_library = "{arrow}",
)

cc_import(
    name = "libarrow_flight",
    shared_library = "{arrow_flight}",
)
"""

# The libraries by their absolute path.
_INSTALLED = _HEADERS + """
cc_library(
    name = "arrow",
    linkopts = {arrow},
    deps = [":headers"],
)

cc_library(
    name = "flight",
    linkopts = {arrow_flight},
    deps = [":arrow"],
)
"""

def _find_library(ctx, folder, stem):
    """The file name of lib<stem>.so, or of one with a version; "" without."""
    found = ""
    for file in ctx.path(folder).readdir():
        name = file.basename
        if (name + ".").startswith("lib%s.so." % stem) and (not found or len(name) < len(found)):
            found = name
    return found

def _wheels_impl(ctx):
    unpack_wheels(
        ctx,
        what = "Arrow",
        flag = "RILL_FLIGHT=hermetic",
        kept = "flight_wheels",
        # The libraries are the same for every Python; one of them is named here.
        pip_options = [
            "--implementation=cp",
            "--python-version=3.11",
            "--abi=cp311",
            "--platform=manylinux_2_28_x86_64",
        ],
        instead = ", or set RILL_FLIGHT to the folder of an installed Arrow",
        members = [
            "pyarrow/include/arrow/*",
            "pyarrow/libarrow.so.*",
            "pyarrow/libarrow_flight.so.*",
        ],
    )
    ctx.symlink("unpacked/pyarrow/include", "include")
    ctx.file("BUILD", _WHEELS.format(
        arrow = "unpacked/pyarrow/" + _find_library(ctx, "unpacked/pyarrow", "arrow"),
        arrow_flight = "unpacked/pyarrow/" + _find_library(ctx, "unpacked/pyarrow", "arrow_flight"),
    ))

_wheels = repository_rule(
    implementation = _wheels_impl,
    attrs = {"requirements": attr.label(default = Label("//tools/flight:requirements.txt"))},
)

def _link_installed(ctx, path):
    folder = path + "/lib" if ctx.path(path + "/lib").exists else path
    libraries = {}
    for stem in ["arrow", "arrow_flight"]:
        library = _find_library(ctx, folder, stem) if ctx.path(folder).exists else ""
        if not library or not ctx.path(path + "/include/arrow/flight/api.h").exists:
            fail("RILL_FLIGHT=%s holds no include/arrow/flight/api.h or no lib%s.so: " % (path, stem) +
                 "want the folder of an installed Arrow with Flight, or of a Python's pyarrow")
        libraries[stem] = ["-L" + folder, "-Wl,-rpath," + folder, "-l:" + library]
    ctx.symlink(path + "/include", "include")
    ctx.file("BUILD", _INSTALLED.format(**libraries))

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_FLIGHT", "")
    is_there = wanted not in ["", "none"]
    if not is_there:
        ctx.file("BUILD", _STUB)
    elif wanted == "hermetic":
        ctx.file("BUILD", _ALIASES.format(wheels = ctx.attr.wheels))
    elif wanted.startswith("/"):
        _link_installed(ctx, wanted)
    else:
        fail("RILL_FLIGHT=%s: want none, hermetic or the absolute path of an Arrow" % wanted)
    ctx.file("is_there.bzl", "IS_THERE = %s\n" % is_there)

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {"wheels": attr.string()},
    environ = ["RILL_FLIGHT"],
)

def flight_repositories():
    """@local_flight and, beside it, the wheel, which is fetched when first used."""
    _wheels(name = "local_flight_wheels")
    _configure(name = "local_flight", wheels = "local_flight_wheels")
