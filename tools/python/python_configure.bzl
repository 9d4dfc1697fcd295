"""@local_python: nanobind and an interpreter's headers, for --config=python.

RILL_PYTHON (set with --repo_env) picks the interpreter that the wheel is for,
and so whether there is one:
  unset, "" or "none"  an empty stand-in; nothing of Python is looked for.
  a name               that of an interpreter on PATH: python3.
  a path               an interpreter: /usr/bin/python3.

CPython 3.11 gets a wheel of its own. From 3.12 on the wheel is one of the
stable interface of 3.12, for all later ones.
"""

load("//tools:pip_wheels.bzl", "unpack_wheels")

# What Python targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "headers")

cc_library(name = "nanobind")
"""

# #include "nanobind/nanobind.h". Its library is one source, as its makers
# compile it, and throws.
_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    defines = {defines},
    includes = ["include"],
)

cc_library(
    name = "nanobind",
    srcs = ["nanobind/src/nb_combined.cpp"],
    hdrs = glob(["nanobind/include/**", "nanobind/src/*.h"]),
    copts = [
        "-fvisibility=hidden",
        "-fno-strict-aliasing",
        "-Os",
        "-w",
    ],
    includes = ["nanobind/include"],
    textual_hdrs = glob(
        ["nanobind/src/*.cpp", "nanobind/ext/robin_map/include/**"],
        exclude = ["nanobind/src/nb_combined.cpp"],
    ),
    deps = [":headers", ":robin_map"],
)

cc_library(
    name = "robin_map",
    hdrs = glob(["nanobind/ext/robin_map/include/**"]),
    includes = ["nanobind/ext/robin_map/include"],
)
"""

# What the interpreter says of itself, a line each.
_ASK = """
import sys, sysconfig
print(sys.implementation.name)
print("%d.%d" % sys.version_info[:2])
print(sysconfig.get_paths()["include"])
print(sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
print(sys.executable)
"""

def _interpreter(ctx, wanted):
    path = ctx.path(wanted) if wanted.startswith("/") else ctx.which(wanted)
    if not path or not path.exists:
        fail("RILL_PYTHON=%s: no such interpreter; want none, a name on PATH as python3, or an absolute path" % wanted)
    done = ctx.execute([path, "-c", _ASK])
    lines = done.stdout.split("\n")
    if done.return_code or len(lines) < 5:
        fail("RILL_PYTHON=%s does not run:\n" % wanted + done.stderr)
    name, version, headers, is_free_threaded, executable = lines[:5]
    minor = int(version.split(".")[1])
    if name != "cpython" or version.split(".")[0] != "3" or minor < 11 or is_free_threaded != "0":
        fail("RILL_PYTHON=%s is %s %s, want CPython 3.11 or later with its lock" % (wanted, name, version))
    if not ctx.path(headers + "/Python.h").exists:
        fail("RILL_PYTHON=%s has no %s/Python.h: install its headers (Debian: python3-dev), " % (wanted, headers) +
             "or name an interpreter that has them")
    return struct(headers = headers, minor = minor, executable = executable)

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_PYTHON", "")
    is_there = wanted not in ["", "none"]
    tag, executable = ("", "")
    if not is_there:
        ctx.file("BUILD", _STUB)
    else:
        python = _interpreter(ctx, wanted)
        unpack_wheels(
            ctx,
            what = "nanobind",
            flag = "RILL_PYTHON=" + wanted,
            kept = "python_wheels",
            pip_options = [],
            members = ["nanobind/include/*", "nanobind/src/*", "nanobind/ext/*", "nanobind/stubgen.py"],
        )
        ctx.symlink("unpacked/nanobind", "nanobind")
        ctx.symlink(python.headers, "include")
        is_stable = python.minor >= 12
        ctx.file("BUILD", _BUILD.format(defines = ["Py_LIMITED_API=0x030C0000"] if is_stable else []))
        tag = "cp312-abi3" if is_stable else "cp3%d-cp3%d" % (python.minor, python.minor)
        executable = python.executable
    ctx.file("python_info.bzl", "IS_THERE = %s\n\nWHEEL_TAG = \"%s\"\n\nINTERPRETER = \"%s\"\n" % (is_there, tag, executable))

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {"requirements": attr.label(default = Label("//tools/python:requirements.txt"))},
    environ = ["RILL_PYTHON"],
)

def python_repositories():
    """@local_python."""
    _configure(name = "local_python")
