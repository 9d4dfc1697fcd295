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
    return [DefaultInfo(executable = script)]

_named_labels_test = rule(
    implementation = _impl,
    test = True,
    attrs = {"named": attr.label_keyed_string_dict(providers = [CcInfo])},
)

def named_labels_test(name, labels, **kwargs):
    """A test that Bazel's analysis makes: visibility and headers. Compiles nothing.

    Args:
      name: the test's name.
      labels: {label: headers}, as labels.bzl has them.
      **kwargs: of each rule.
    """
    _named_labels_test(
        name = name,
        size = "small",
        named = {label: " ".join(labels[label]) for label in labels},
        **kwargs
    )
