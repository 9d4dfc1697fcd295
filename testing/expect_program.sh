# SPDX-License-Identifier: Apache-2.0
# For tests of a program as a user meets it. Source it with `program` (its path)
# and `work` (an empty folder) set; the test ends with [ "$failures" -eq 0 ].
failures=0

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" "$work/err" >&2
  failures=$((failures + 1))
}

# expect NAME CODE TEXT ARG...: exit code, TEXT in what it prints where the code
# is 0, else in its only line of error.
expect() {
  name=$1 want=$2 text=$3
  shift 3
  "$program" "$@" >"$work/out" 2>"$work/err"
  code=$?
  [ "$code" -eq "$want" ] || fail "$name: exit code $code, want $want"
  if [ "$want" -eq 0 ]; then
    grep -qF -- "$text" "$work/out" || fail "$name: no '$text'"
    [ ! -s "$work/err" ] || fail "$name: an error line"
  else
    grep -qF -- "$text" "$work/err" || fail "$name: no '$text'"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$name: not one line of error"
    [ ! -s "$work/out" ] || fail "$name: output beside the error"
  fi
}
