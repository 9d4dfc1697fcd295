"""precompiled_header: a header that g++ parses once for many sources."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load(":cxx20.bzl", "cxx_features")

def _of_headers(files):
    return CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset(files),
    ))

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cxx_features(ctx, toolchain)
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-compile",
    )
    options = ctx.actions.declare_file(ctx.label.name + ".options")
    if compiler.split("/")[-1].split("-")[0] not in ("gcc", "g++"):
        ctx.actions.write(options, "")
        return [_of_headers([options])]

    # g++ takes the parsed header where it lies beside the one that is named.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    parsed = ctx.actions.declare_file(ctx.label.name + ".h.gch")

    level = [ctx.attr.level] if ctx.attr.level and ctx.var["COMPILATION_MODE"] == "fastbuild" else []

    # -fpch-deps: what the parsed header has read is read by the source too.
    # To collect garbage below 2 GB costs an eighth of a file's time.
    ctx.actions.write(options, " ".join(level + ["-fpch-deps", "--param=ggc-min-heapsize=2000000", "-include", header.path]))
    ctx.actions.symlink(output = header, target_file = ctx.file.hdr)
    deps = cc_common.merge_cc_infos(cc_infos = [
        dep[CcInfo]
        for dep in ctx.attr.deps + getattr(ctx.attr, "_deps", [])
    ])
    context = deps.compilation_context

    # With -MD the parsed header remembers what it has read.
    options_here = level + ["-xc++-header", "-MD", "-MF", "/dev/null"]
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = parsed.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + options_here,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = toolchain.needs_pic_for_dynamic_libraries(feature_configuration = features),
    )
    ctx.actions.run(
        mnemonic = "CppPrecompile",
        executable = compiler,
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        inputs = depset([header, ctx.file.hdr], transitive = [context.headers, toolchain.all_files]),
        outputs = [parsed],
    )

    # Nothing is linked for it.
    read = CcInfo(compilation_context = deps.compilation_context)
    return [cc_common.merge_cc_infos(cc_infos = [_of_headers([options, header, parsed]), read])]

_DOC = "A dependency of sources with the option `@$(BINDIR)/<package>/<name>.options`. " + \
       "Other compilers than g++ get no header from there."

_ATTRS = {
    "deps": attr.label_list(providers = [CcInfo]),
    "hdr": attr.label(allow_single_file = True, mandatory = True),
    # What the sources are optimised for in fastbuild; "" as Bazel does.
    "level": attr.string(),
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
}

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = _DOC,
    attrs = _ATTRS,
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

precompiled_library_header = rule(
    implementation = _precompiled_header_impl,
    doc = _DOC + " For libraries: what it includes is an implicit dependency, which is none of theirs " +
          "(query with --noimplicit_deps leaves it out).",
    attrs = dict(_ATTRS, _deps = attr.label_list(default = [
        "@com_google_absl//absl/base:core_headers",
        "@com_google_absl//absl/functional:function_ref",
        "@com_google_absl//absl/status",
        "@com_google_absl//absl/status:statusor",
        "@com_google_absl//absl/strings",
        "@com_google_absl//absl/strings:str_format",
        "@com_google_absl//absl/synchronization",
        "@com_google_absl//absl/time",
        "@com_google_absl//absl/types:span",
    ])),
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
