"""Stand-ins for what Bazel 4.2.3 would download and a C++ build never uses.

@bazel_tools//tools/jdk loads @rules_java, although all it takes from there are
the built-in rules under their own names; and every cc_test depends on
@remote_coverage_tools, although nothing runs it outside `bazel coverage`.
"""

_JAVA_RULES = [
    "java_binary",
    "java_import",
    "java_library",
    "java_lite_proto_library",
    "java_package_configuration",
    "java_plugin",
    "java_proto_library",
    "java_runtime",
    "java_test",
    "java_toolchain",
]

def _builtin_rules_java_impl(ctx):
    ctx.file("BUILD", "")
    ctx.file("java/BUILD", "")
    lines = ["%s = native.%s" % (rule, rule) for rule in _JAVA_RULES]
    ctx.file("java/defs.bzl", "\n".join(lines) + "\n")

builtin_rules_java = repository_rule(implementation = _builtin_rules_java_impl)

def _no_coverage_tools_impl(ctx):
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

sh_binary(
    name = "coverage_report_generator",
    srcs = ["unavailable.sh"],
)
""")
    ctx.file("unavailable.sh", "#!/bin/sh\necho 'coverage is not set up' >&2\nexit 1\n")

no_coverage_tools = repository_rule(implementation = _no_coverage_tools_impl)
