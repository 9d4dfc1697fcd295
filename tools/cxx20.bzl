"""cxx_standard: which C++ standard the compile command asks for."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# What compilers call C++20 and its successors.
_NEW = ["20", "2a", "23", "2b", "26", "2c"]

def cxx_features(ctx, toolchain):
    """The features of a compile command that is no cc_library's."""
    return cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        # Their variables are a cc_library's.
        unsupported_features = ctx.disabled_features + ["layering_check", "module_maps"],
    )

def _cxx_standard_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cxx_features(ctx, toolchain)
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = "c++-compile",
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
        ),
    )
    named = [flag for flag in flags if flag.startswith("-std=")]
    is_new = len(named) > 0 and named[-1].split("++")[-1] in _NEW
    return [config_common.FeatureFlagInfo(value = "20" if is_new else "old")]

cxx_standard = rule(
    implementation = _cxx_standard_impl,
    doc = "For config_setting's flag_values: \"20\" or, before it or unsaid, \"old\".",
    attrs = {
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
