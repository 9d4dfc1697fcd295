"""The examples of a package's headers and pages, compiled as they stand."""

load("@bazel_skylib//rules:build_test.bzl", "build_test")
load("//tools:rill.bzl", "rill_cc_library")

def _source_impl(ctx):
    # Headers come from the libraries that have them, so none must be exported.
    files = {}
    for dep in ctx.attr.deps:
        for header in dep[CcInfo].compilation_context.direct_public_headers:
            files[header.path.split("/rill/")[-1]] = header
    for page in ctx.files.pages:
        files[page.short_path] = page
    args = ctx.actions.args()
    args.add(ctx.file._writer)
    args.add("--out", ctx.outputs.out)
    args.add("--context", ctx.attr.context)
    inputs = [ctx.file._writer]
    for src in ctx.attr.srcs:
        if src not in files:
            fail("srcs: no target of deps has the header \"%s\"" % src)
        inputs.append(files[src])
        args.add(files[src], format = src + "=%s")
    ctx.actions.run_shell(
        outputs = [ctx.outputs.out],
        inputs = inputs,
        command = "exec python3 \"$@\"",
        arguments = [args],
        mnemonic = "DocExamples",
        use_default_shell_env = True,
    )

_doc_examples_source = rule(
    implementation = _source_impl,
    attrs = {
        "context": attr.string(mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "out": attr.output(mandatory = True),
        "pages": attr.label_list(allow_files = [".md"]),
        "srcs": attr.string_list(mandatory = True),
        "_writer": attr.label(
            default = Label("//tools/doc_examples:doc_examples.py"),
            allow_single_file = True,
        ),
    },
)

def _label_of(path):
    folder, _, name = path.rpartition("/")
    return "//%s:%s" % (folder, name)

def rill_doc_examples(name, srcs, deps, target_compatible_with = None):
    """Compiles the examples of files, word for word, in one source.

    Args:
      name: doc_examples. <name>_test fails where they do not compile.
      srcs: headers and pages that have examples, by their paths in the tree.
      deps: what these headers, and those that context.h includes, are in.
      target_compatible_with: as of any target.
    """
    _doc_examples_source(
        name = name + "_source",
        testonly = True,
        srcs = srcs,
        out = name + ".cc",
        context = "rill/%s/context.h" % native.package_name(),
        pages = [_label_of(src) for src in srcs if src.endswith(".md")],
        target_compatible_with = target_compatible_with,
        visibility = ["//visibility:private"],
        deps = deps,
    )
    rill_cc_library(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        hdrs = ["context.h"],
        # What the examples take for granted is declared, and defined nowhere.
        linkstatic = True,
        target_compatible_with = target_compatible_with,
        deps = deps,
    )

    # There is nothing to run under a sanitizer.
    build_test(
        name = name + "_test",
        tags = ["no_sanitizer"],
        target_compatible_with = target_compatible_with,
        targets = [":" + name],
    )
