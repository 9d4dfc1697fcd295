"""A test that code does not compile, and that the compilers say why."""

# Each compiler that is there; the others are passed over.
_COMPILERS = ["g++", "clang++"]

# COMPILER SOURCE CASE=LOG ... -- FLAG...: what the cases include is compiled
# once, which is nearly all of the work.
_COMPILE = """
compiler="$1"; source="$2"; shift 2
cases=""
while [ "$1" != -- ]; do cases="$cases $1"; shift; done
shift
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
if command -v "$compiler" > /dev/null; then
  grep '^#include' "$source" > "$tmp/all.h"
  "$compiler" -std=c++20 -w "$@" -x c++-header "$tmp/all.h" -o "$tmp/all.h.gch" || exit 1
fi
for case in $cases; do
  log="${case#*=}"
  if ! command -v "$compiler" > /dev/null; then
    echo "absent" > "$log"
  elif "$compiler" -std=c++20 -fsyntax-only -w "-D${case%%=*}" "$@" \
       -include "$tmp/all.h" "$source" > "$log" 2>&1; then
    echo "compiled" >> "$log"
  else
    echo "refused" >> "$log"
  fi
done
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
    for compiler in _COMPILERS:
        logs_here = {
            case: ctx.actions.declare_file("_".join([
                ctx.label.name,
                case,
                compiler.replace("+", "x"),
            ]) + ".log")
            for case in ctx.attr.cases
        }
        ctx.actions.run_shell(
            command = _COMPILE,
            arguments = [compiler, ctx.file.src.path] +
                        [case + "=" + log.path for case, log in logs_here.items()] +
                        ["--"] + flags,
            inputs = depset([ctx.file.src], transitive = [context.headers]),
            outputs = logs_here.values(),
            mnemonic = "CompileSnippets",
            use_default_shell_env = True,
        )
        for case, words in ctx.attr.cases.items():
            script.append(" ".join(
                ["check", logs_here[case].short_path, "refused" if words else "compiled"] +
                ['"%s"' % w for w in words],
            ))
        logs += logs_here.values()
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
