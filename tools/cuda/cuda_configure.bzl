"""@local_cuda: the CUDA toolkit that --config=cuda compiles with.

RILL_CUDA (set with --repo_env) picks it, and so whether there is CUDA at all:
  unset, "" or "none"  an empty stand-in; nothing of CUDA is looked for.
  "hermetic"           the pinned wheels of requirements.txt, through pip.
  a path               the toolkit that is installed there.
"""

load("//tools:pip_wheels.bzl", "unpack_wheels")

# What CUDA targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

_NOTHING = select(
    {"%s": []},
    no_match_error = "CUDA is enabled and RILL_CUDA names no toolkit; add " +
                     "--repo_env=RILL_CUDA=hermetic, or the folder of an " +
                     "installed one.",
)

filegroup(
    name = "nvcc",
    srcs = _NOTHING,
)

filegroup(name = "nvcc_files")

cc_library(
    name = "headers",
    deps = _NOTHING,
)

cc_library(
    name = "cudart",
    deps = [":headers"],
)
"""

def _with_repository(label):
    """`label` as another repository's BUILD file can write it."""
    text = str(label)
    return text if text.startswith("@") else "@" + text

_TOOLKIT = """
package(default_visibility = ["//visibility:public"])

filegroup(
    name = "nvcc",
    srcs = ["root/bin/nvcc"],
)

filegroup(
    name = "nvcc_files",
    srcs = glob(["root/bin/**", "root/nvvm/**", "root/include/**"]),
)

cc_library(
    name = "headers",
    hdrs = glob(["root/include/**"]),
    includes = ["root/include", "root/include/cccl"],
)

cc_import(
    name = "cudart_static",
    static_library = "root/lib/libcudart_static.a",
)

# Static: a program built with CUDA starts where there is no driver.
cc_library(
    name = "cudart",
    linkopts = ["-ldl", "-lrt", "-lpthread"],
    deps = [":cudart_static", ":headers"],
)
"""

_ALIASES = """
package(default_visibility = ["//visibility:public"])
""" + "".join(["""
alias(
    name = "%s",
    actual = "@{wheels}//:%s",
)
""" % (target, target) for target in ["cudart", "headers", "nvcc", "nvcc_files"]])

def _wheels_impl(ctx):
    unpack_wheels(
        ctx,
        what = "CUDA",
        flag = "RILL_CUDA=hermetic",
        kept = "cuda_wheels",
        pip_options = [
            "--platform=manylinux_2_17_x86_64",
            "--platform=manylinux2014_x86_64",
            "--platform=manylinux_2_12_x86_64",
            "--platform=manylinux2010_x86_64",
        ],
        instead = ", or set RILL_CUDA to the folder of an installed toolkit",
    )
    ctx.symlink("unpacked/nvidia/cu13", "root")
    ctx.file("BUILD", _TOOLKIT)

_wheels = repository_rule(
    implementation = _wheels_impl,
    attrs = {"requirements": attr.label(default = Label("//tools/cuda:requirements.txt"))},
)

def _link_installed(ctx, path):
    for folder in ["bin", "include", "nvvm"]:
        if not ctx.path(path + "/" + folder).exists:
            fail("RILL_CUDA=%s holds no %s: want the folder of a CUDA toolkit" % (path, folder))
        ctx.symlink(path + "/" + folder, "root/" + folder)
    for lib in ["lib64", "lib", "targets/x86_64-linux/lib"]:
        if ctx.path(path + "/" + lib + "/libcudart_static.a").exists:
            ctx.symlink(path + "/" + lib, "root/lib")
            return
    fail("RILL_CUDA=%s holds no libcudart_static.a: want the folder of a CUDA toolkit" % path)

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_CUDA", "")
    is_there = wanted not in ["", "none"]
    ctx.file("is_there.bzl", "IS_THERE = %s\n" % is_there)
    if not is_there:
        ctx.file("BUILD", _STUB % _with_repository(Label("//tools/cuda:disabled")))
    elif wanted == "hermetic":
        ctx.file("BUILD", _ALIASES.format(wheels = ctx.attr.wheels))
    elif wanted.startswith("/"):
        _link_installed(ctx, wanted)
        ctx.file("BUILD", _TOOLKIT)
    else:
        fail("RILL_CUDA=%s: want none, hermetic or the absolute path of a toolkit" % wanted)

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {"wheels": attr.string()},
    environ = ["RILL_CUDA"],
)

def cuda_repositories():
    """@local_cuda and, beside it, the wheels.

    Two repositories, so that going back and forth between the CPU and the CUDA
    build makes only the small one anew. The wheels are fetched when first used.
    """
    _wheels(name = "local_cuda_wheels")
    _configure(name = "local_cuda", wheels = "local_cuda_wheels")
