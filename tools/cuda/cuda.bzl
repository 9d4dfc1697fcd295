"""cuda_library: .cu files, compiled by @local_cuda's nvcc, as a cc_library."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# What Bazel says of a CUDA target that is built by name without CUDA.
# (4.2.3 has no @platforms//:incompatible.)
CUDA_IS_OFF = "CUDA is off; add --repo_env=RILL_CUDA=hermetic"

def if_cuda(yes, no = []):
    """`yes` under --config=cuda, else `no`. For deps; laws see both sides."""
    return select({
        str(Label("//tools/cuda:enabled")): yes,
        "//conditions:default": no,
    })

def requires_cuda():
    """For target_compatible_with: wildcards skip the target without CUDA."""
    return if_cuda([], [str(Label("//tools/cuda:" + CUDA_IS_OFF))])

_MODE_FLAGS = {
    "opt": ["-O3", "-DNDEBUG"],
    "dbg": ["-O0", "-g", "-lineinfo"],
    "fastbuild": ["-O1"],
}

def _arch_flags(ctx):
    archs = ctx.attr._archs[BuildSettingInfo].value.split(",")
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (a, a) for a in archs]
    return flags + ["-gencode=arch=compute_%s,code=compute_%s" % (archs[-1], archs[-1])]

def _compile(ctx, src, cc_toolchain, context):
    obj = ctx.actions.declare_file("_objs/%s/%s.pic.o" % (ctx.label.name, src.basename))
    nvcc = ctx.files._nvcc[0]
    args = ctx.actions.args()
    args.add_all(["-std=c++20", "-x", "cu", "-c", src, "-o", obj])
    args.add("-ccbin", cc_toolchain.compiler_executable)
    args.add_all(["-Xcompiler", "-fPIC"])

    # Warnings are errors in Rill's own builds only.
    if not ctx.label.workspace_root:
        args.add_all(["-Xcompiler", "-Wall,-Wextra,-Werror", "-Werror", "all-warnings"])
    args.add_all(_arch_flags(ctx))
    args.add_all(_MODE_FLAGS[ctx.var["COMPILATION_MODE"]])
    args.add_all(ctx.attr.copts)
    args.add_all(context.defines, format_each = "-D%s")

    # `includes` holds the _virtual_includes folders that "rill/..." is under.
    args.add_all(context.includes, before_each = "-I")
    args.add_all(context.quote_includes, before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    ctx.actions.run(
        executable = nvcc,
        arguments = [args],
        inputs = depset(
            [src, nvcc] + ctx.files._nvcc_files,
            transitive = [context.headers, cc_toolchain.all_files],
        ),
        outputs = [obj],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s" % src.short_path,
        # nvcc looks for the host compiler's tools there and writes there.
        env = {"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp"},
    )
    return obj

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    deps = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    context = deps.compilation_context
    objects = [_compile(ctx, src, cc_toolchain, context) for src in ctx.files.srcs]
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = cc_toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [d[CcInfo].linking_context for d in ctx.attr.deps],
        disallow_dynamic_library = True,
        alwayslink = ctx.attr.alwayslink,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = context, linking_context = linking),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "alwayslink": attr.bool(default = False),
        "_archs": attr.label(default = "//tools/cuda:archs"),
        "_nvcc": attr.label(default = "@local_cuda//:nvcc", allow_files = True),
        "_nvcc_files": attr.label(default = "@local_cuda//:nvcc_files", allow_files = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, srcs, deps = [], **kwargs):
    """Kernels: .cu files, compiled by nvcc; skipped without --config=cuda.

    Sources only: their headers belong to a rill_cc_library in deps, which gives
    them their "rill/..." path and lets them be used without CUDA.

    Args:
      name: <stem>_kernels.
      srcs: .cu files.
      deps: cc_library targets; keep Abseil and GoogleTest out of .cu files.
      **kwargs: copts for nvcc, alwayslink, visibility, tags, testonly.
    """
    _cuda_library(
        name = name,
        srcs = srcs,
        deps = deps + [str(Label("//tools/cuda:cudart"))],
        target_compatible_with = requires_cuda(),
        **kwargs
    )
