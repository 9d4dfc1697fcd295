"""@local_torch: LibTorch, for --config=torch.

RILL_TORCH (set with --repo_env) picks it, and so whether there is LibTorch:
  unset, "" or "none"  an empty stand-in; nothing of LibTorch is looked for.
  "hermetic"           the pinned wheels of requirements.txt, through pip; its
                       CPU library alone.
  a path               an installed LibTorch, or the folder `torch` of a Python
                       package; with its CUDA library where RILL_CUDA is on.

Where RILL_CUDA is on too, Rill's CUDA code runs with LibTorch's CUDA runtime.
"""

load("//tools:pip_wheels.bzl", "unpack_wheels")

# What LibTorch targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "cudart")

cc_library(name = "torch")
"""

_ALIASES = """
package(default_visibility = ["//visibility:public"])
""" + "".join(["""
alias(
    name = "%s",
    actual = "@{wheels}//:%s",
)
""" % (target, target) for target in ["cudart", "torch"]])

# #include <ATen/core/Tensor.h>, <torch/torch.h>. What AOTInductor compiles needs
# a libtorch.so, which is but a name for libtorch_cpu.so and libtorch_cuda.so. An
# empty one does where the program has these.
_HEADERS = """
package(default_visibility = ["//visibility:public"])

cc_binary(
    name = "libtorch.so",
    linkopts = ["-Wl,-soname,libtorch.so"],
    linkshared = True,
)

cc_import(
    name = "torch_name",
    shared_library = ":libtorch.so",
)

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
        ":torch_name",
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
    deps = [":torch_name"],
)

cc_library(
    name = "cudart",
    linkopts = {cudart_linkopts},
)
"""

def _link_options(folder, files):
    return ["-L" + folder, "-Wl,-rpath," + folder] + ["-l:" + file for file in files]

def _link_installed(ctx, path, cudart, wants_cuda):
    for wanted in ["include/ATen/ATen.h", "lib/libtorch_cpu.so", "lib/libc10.so"]:
        if not ctx.path(path + "/" + wanted).exists:
            fail("RILL_TORCH=%s holds no %s: want the folder of a LibTorch, or of a Python's torch" % (path, wanted))
    files = ["libtorch_cpu.so", "libc10.so"]
    if wants_cuda:
        # They register kernels: nothing names their symbols.
        files = ["libtorch_cuda.so", "libc10_cuda.so"] + files
    linkopts = ["-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"] + _link_options(path + "/lib", files)
    ctx.symlink(path + "/include", "include")
    ctx.file("BUILD", _INSTALLED.format(
        linkopts = linkopts,
        cudart_linkopts = _link_options(str(cudart.dirname), [cudart.basename]) if cudart else [],
    ))

def _installed_cudart(ctx, path):
    """The CUDA runtime of an installed LibTorch; None where that has no CUDA."""
    if not ctx.path(path + "/lib/libtorch_cuda.so").exists:
        return None
    folders = [path + "/lib", path + "/../nvidia/cu13/lib", path + "/../nvidia/cuda_runtime/lib"]
    for folder in folders:
        if ctx.path(folder).exists:
            for file in ctx.path(folder).readdir():
                if file.basename.startswith("libcudart") and ".so." in file.basename:
                    return file
    fail("RILL_TORCH=%s has a CUDA library and no libcudart*.so.* in one of %s; " % (path, ", ".join(folders)) +
         "install the nvidia-cuda-runtime that this torch asks for beside it")

def _pinned_version(ctx, requirements):
    """[major, minor] of the CUDA runtime that requirements pin."""
    pin = ctx.read(requirements).split("\nnvidia-cuda-runtime==")[1]
    return pin.split(".")[:2]

def _toolkit_version(ctx, wanted):
    if wanted == "hermetic":
        return _pinned_version(ctx, ctx.attr.cuda_requirements)
    header = ctx.read(wanted + "/include/cuda_runtime_api.h")
    number = int(header.split("#define CUDART_VERSION")[1].strip().split("\n")[0].strip())
    return [str(number // 1000), str(number % 1000 // 10)]

def _compare_versions(toolkit, runtime):
    if toolkit[0] != runtime[0]:
        fail("RILL_CUDA is CUDA %s and RILL_TORCH has the runtime of CUDA %s: " % (".".join(toolkit), ".".join(runtime)) +
             "a program has one CUDA runtime; set RILL_CUDA to a toolkit of CUDA %s, " % runtime[0] +
             "or RILL_TORCH to a LibTorch of CUDA %s" % toolkit[0])
    if toolkit[:len(runtime)] != runtime:
        # buildifier: disable=print
        print("CUDA %s compiles, and programs run with LibTorch's CUDA runtime %s, of the same major version" %
              (".".join(toolkit), ".".join(runtime)))

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_TORCH", "")
    cuda = ctx.os.environ.get("RILL_CUDA", "")
    wants_cuda = cuda not in ["", "none"]
    runtime = None
    is_there = wanted not in ["", "none"]
    if not is_there:
        ctx.file("BUILD", _STUB)
    elif wanted == "hermetic":
        runtime = _pinned_version(ctx, ctx.attr.requirements)
        ctx.file("BUILD", _ALIASES.format(wheels = ctx.attr.wheels))
    elif wanted.startswith("/"):
        cudart = _installed_cudart(ctx, wanted) if wants_cuda else None
        if cudart:
            runtime = [cudart.basename.split(".so.")[1].split(".")[0]]
        _link_installed(ctx, wanted, cudart, wants_cuda = cudart != None)
    else:
        fail("RILL_TORCH=%s: want none, hermetic or the absolute path of a LibTorch" % wanted)
    if wants_cuda and runtime:
        _compare_versions(_toolkit_version(ctx, cuda), runtime)
    ctx.file("is_there.bzl", "IS_THERE = %s\n\nHAS_CUDART = %s\n" % (is_there, runtime != None))

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {
        "cuda_requirements": attr.label(default = Label("//tools/cuda:requirements.txt")),
        "requirements": attr.label(default = Label("//tools/torch:requirements.txt")),
        "wheels": attr.string(),
    },
    environ = ["RILL_CUDA", "RILL_TORCH"],
)

def torch_repositories():
    """@local_torch and, beside it, the wheels, which are fetched when first used."""
    _wheels(name = "local_torch_wheels")
    _configure(name = "local_torch", wheels = "local_torch_wheels")
