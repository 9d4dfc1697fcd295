"""@local_torch: LibTorch, for --config=torch.

RILL_TORCH (set with --repo_env) picks it, and so whether there is LibTorch:
  unset, "" or "none"  an empty stand-in; nothing of LibTorch is looked for.
  "hermetic"           the pinned wheels of requirements.txt, through pip; its
                       CPU library alone.
  a path               an installed LibTorch, or the folder `torch` of a Python
                       package; with its CUDA library where RILL_CUDA is on.
"""

load("//tools:pip_wheels.bzl", "unpack_wheels")

# What LibTorch targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "torch")
"""

_ALIAS = """
package(default_visibility = ["//visibility:public"])

alias(
    name = "torch",
    actual = "@{wheels}//:torch",
)
"""

# #include <ATen/core/Tensor.h>, <torch/torch.h>
_HEADERS = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "torch",
    hdrs = glob(["include/**"]),
    includes = ["include", "include/torch/csrc/api/include"],
"""

_WHEELS = _HEADERS + """
    deps = [
        ":c10",
        ":cudart",
        ":cupti",
        ":gomp",
        ":torch_cpu",
    ],
)

[
    cc_import(
        name = name,
        shared_library = file,
    )
    for name, file in {
        "c10": "unpacked/torch/lib/libc10.so",
        "cudart": "unpacked/nvidia/cu13/lib/libcudart.so.13",
        "cupti": "unpacked/nvidia/cu13/lib/libcupti.so.13",
        "gomp": "unpacked/torch/lib/libgomp.so.1",
        "torch_cpu": "unpacked/torch/lib/libtorch_cpu.so",
    }.items()
]
"""

def _wheels_impl(ctx):
    unpack_wheels(
        ctx,
        what = "LibTorch",
        flag = "RILL_TORCH=hermetic",
        kept = "torch_wheels",
        # The libraries are the same for every Python; one of them is named here.
        pip_options = [
            "--implementation=cp",
            "--python-version=3.11",
            "--abi=cp311",
            "--abi=none",
            "--platform=manylinux_2_28_x86_64",
            "--platform=manylinux_2_25_x86_64",
            "--platform=manylinux_2_17_x86_64",
            "--platform=any",
        ],
        instead = ", or set RILL_TORCH to the folder of an installed LibTorch",
        members = [
            "torch/include/*",
            "torch/lib/libc10.so",
            "torch/lib/libgomp.so.1",
            "torch/lib/libtorch_cpu.so",
            "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cu13/lib/libcupti.so.13",
        ],
    )
    ctx.symlink("unpacked/torch/include", "include")
    ctx.file("BUILD", _WHEELS)

_wheels = repository_rule(
    implementation = _wheels_impl,
    attrs = {"requirements": attr.label(default = Label("//tools/torch:requirements.txt"))},
)

# Libraries by their absolute path: they find those beside them as their makers
# laid them out.
_INSTALLED = _HEADERS + """
    linkopts = {linkopts},
)
"""

def _link_installed(ctx, path, wants_cuda):
    for wanted in ["include/ATen/ATen.h", "lib/libtorch_cpu.so", "lib/libc10.so"]:
        if not ctx.path(path + "/" + wanted).exists:
            fail("RILL_TORCH=%s holds no %s: want the folder of a LibTorch or of a Python's torch" % (path, wanted))
    names = ["torch_cpu", "c10"]
    if wants_cuda:
        if not ctx.path(path + "/lib/libtorch_cuda.so").exists:
            fail("RILL_TORCH=%s holds no lib/libtorch_cuda.so and RILL_CUDA is on: want a LibTorch " % path +
                 "that was built with CUDA, or RILL_CUDA=none")
        names = ["torch_cuda", "c10_cuda"] + names
    linkopts = ["-L%s/lib" % path, "-Wl,-rpath,%s/lib" % path, "-Wl,--allow-shlib-undefined"]
    ctx.symlink(path + "/include", "include")
    ctx.file("BUILD", _INSTALLED.replace("{linkopts}", str(linkopts + ["-l" + name for name in names])))

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_TORCH", "")
    is_there = wanted not in ["", "none"]
    ctx.file("is_there.bzl", "IS_THERE = %s\n" % is_there)
    if not is_there:
        ctx.file("BUILD", _STUB)
    elif wanted == "hermetic":
        ctx.file("BUILD", _ALIAS.format(wheels = ctx.attr.wheels))
    elif wanted.startswith("/"):
        _link_installed(ctx, wanted, ctx.os.environ.get("RILL_CUDA", "") not in ["", "none"])
    else:
        fail("RILL_TORCH=%s: want none, hermetic or the absolute path of a LibTorch" % wanted)

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {"wheels": attr.string()},
    environ = ["RILL_CUDA", "RILL_TORCH"],
)

def torch_repositories():
    """@local_torch and, beside it, the wheels, which are fetched when first used."""
    _wheels(name = "local_torch_wheels")
    _configure(name = "local_torch", wheels = "local_torch_wheels")
