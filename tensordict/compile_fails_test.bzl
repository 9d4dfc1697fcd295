"""A test that code does not compile, and that the compilers say why."""

# Each compiler that is there; the others are passed over.
_COMPILERS = ["g++", "clang++"]

_COMPILE = """
compiler="$1"; log="$2"; shift 2
if ! command -v "$compiler" > /dev/null; then
  echo "absent" > "$log"
elif "$compiler" -std=c++20 -fsyntax-only -w "$@" > "$log" 2>&1; then
  echo "compiled" >> "$log"
else
  echo "refused" >> "$log"
fi
"""

_TEST_HEAD = """#!/bin/sh
# check LOG VERDICT WORDS...: the log ends with the verdict and has the words.
bad=0
check() {
  log="$1"; verdict="$2"; shift 2
  if [ "$(tail -n 1 "$log")" = absent ]; then echo "SKIP $log"; return; fi
  if [ "$(tail -n 1 "$log")" != "$verdict" ]; then
    echo "FAIL $log: want $verdict, got:"; cat "$log"; bad=1; return
  fi
  for words in "$@"; do
    if ! grep -qF -e "$words" "$log"; then
      echo "FAIL $log: want the words $words, got:"; cat "$log"; bad=1; return
    fi
  done
  echo "PASS $log"
}
"""

def _compile_fails_test_impl(ctx):
    context = ctx.attr.dep[CcInfo].compilation_context
    flags = (
        ["-D" + d for d in context.defines.to_list()] +
        ["-I" + d for d in context.includes.to_list()] +
        ["-iquote" + d for d in context.quote_includes.to_list()] +
        ["-isystem" + d for d in context.system_includes.to_list()]
    )
    logs = []
    script = [_TEST_HEAD]
    for case, words in ctx.attr.cases.items():
        for compiler in _COMPILERS:
            log = ctx.actions.declare_file("_".join([
                ctx.label.name,
                case,
                compiler.replace("+", "x"),
            ]) + ".log")
            logs.append(log)
            ctx.actions.run_shell(
                command = _COMPILE,
                arguments = [compiler, log.path, "-D" + case] + flags +
                            [ctx.file.src.path],
                inputs = depset([ctx.file.src], transitive = [context.headers]),
                outputs = [log],
                mnemonic = "CompileSnippet",
                use_default_shell_env = True,
            )
            script.append(" ".join(
                ["check", log.short_path, "refused" if words else "compiled"] +
                ['"%s"' % w for w in words],
            ))
    script.append("exit $bad")
    ctx.actions.write(
        ctx.outputs.executable,
        "\n".join(script) + "\n",
        is_executable = True,
    )
    return [DefaultInfo(runfiles = ctx.runfiles(files = logs))]

compile_fails_test = rule(
    implementation = _compile_fails_test_impl,
    doc = "Compiles `src` once for each case, with the case's name defined as a macro, by g++ and clang++.",
    attrs = {
        "src": attr.label(allow_single_file = [".cc"], mandatory = True),
        "dep": attr.label(providers = [CcInfo], mandatory = True),
        "cases": attr.string_list_dict(
            doc = "Macro: words that the error must have. Without words the case must compile.",
            mandatory = True,
        ),
    },
    test = True,
)
