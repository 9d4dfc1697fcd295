"""named_labels_test: what pages name can be depended on, and has these headers."""

def _impl(ctx):
    for target, headers in ctx.attr.named.items():
        context = target[CcInfo].compilation_context
        own = [f.path for f in context.direct_public_headers]
        # Of a bundle: what it passes on.
        found = own or [f.path for f in context.headers.to_list()]
        for header in headers.split(" ") if headers else []:
            if not [path for path in found if path.endswith("/rill/" + header)]:
                fail("%s has no rill/%s" % (target.label, header))
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(script, "#!/bin/sh\nexit 0\n", is_executable = True)
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(ctx.files.included))]

_named_labels_test = rule(
    implementation = _impl,
    test = True,
    attrs = {
        "included": attr.label(allow_files = True),
        "named": attr.label_keyed_string_dict(providers = [CcInfo]),
    },
)

def named_labels_test(name, labels):
    """A test that all labels can be taken, and that their headers compile.

    Analysis looks at visibility, and which target has which header; one file
    that includes them all is compiled, and none of the targets' own.

    Args:
      name: the test's name.
      labels: {label: headers}, as labels.bzl has them.
    """
    headers = {header: None for label in labels for header in labels[label]}
    native.genrule(
        name = name + "_source",
        testonly = True,
        outs = [name + ".cc"],
        cmd = "printf '#include \"rill/%s\"\\n' " + " ".join(headers.keys()) + " > $@",
    )
    native.cc_library(
        name = name + "_headers",
        testonly = True,
        srcs = [name + ".cc"],
        linkstatic = True,
        tags = ["manual"],  # By itself it would have all targets compiled.
        deps = labels.keys(),
    )
    native.filegroup(
        name = name + "_archive",
        testonly = True,
        srcs = [":%s_headers" % name],
        output_group = "archive",
    )
    _named_labels_test(
        name = name,
        size = "small",
        included = ":%s_archive" % name,
        named = {label: " ".join(labels[label]) for label in labels},
    )
