#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its words, its exit codes, one line each.
# usage: main_test.sh CONVERT

set -u
program=$1
work=${TEST_TMPDIR:?}/main_test
rm -rf "$work"
mkdir -p "$work"
# Not links, which loading refuses.
cp -rL formats/testdata/tensordict/A "$work/in"
failures=0

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" >&2
  failures=$((failures + 1))
}

# expect NAME CODE TEXT ARG...: exit code, and TEXT in the line that it prints.
expect() {
  name=$1 want=$2 text=$3
  shift 3
  "$program" "$@" >"$work/out" 2>&1
  code=$?
  [ "$code" -eq "$want" ] || fail "$name: exit code $code, want $want"
  grep -qF -- "$text" "$work/out" || fail "$name: no '$text'"
}

expect "help" 0 "--to=directory|tdz|consolidated|rows|columns" --help
expect "by ending" 0 "10 tensors, 114 bytes" "$work/in" "$work/a.tdz"
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line"
expect "by flag" 0 "consolidated file" "$work/a.tdz" "$work/b" --to=consolidated
expect "to a directory" 0 "memmap directory" "$work/b" "$work/c"
diff -r "$work/in" "$work/c" || fail "the directory came back as another one"
expect "from a deflated archive" 0 "11 tensors" formats/testdata/tensordict/N.tdz "$work/e"
cmp "$work/e/next/reward.memmap" "$work/in/next/reward.memmap" ||
  fail "a deflated tensor came out as another one"
expect "a storage" 0 "storage directory" "$work/in" "$work/rows" --to=rows
expect "its rows" 0 "memmap directory" "$work/rows" "$work/f"
expect "a storage is not replaced" 1 "FAILED_PRECONDITION" "$work/in" "$work/rows" --to=rows
expect "nothing there" 1 "NOT_FOUND" "$work/none" "$work/d"
expect "one path" 1 "got 1 paths" "$work/in"
expect "unknown flag" 1 "--too" "$work/in" "$work/d" --too=tdz
expect "unknown form" 1 "zip" "$work/in" "$work/d" --to=zip
expect "unknown ending" 1 "--to" "$work/in" "$work/d.zip"
mkdir "$work/home"
echo letter >"$work/home/letter"
expect "files of others" 1 "FAILED_PRECONDITION" "$work/in" "$work/home"
[ -e "$work/home/letter" ] || fail "files of others are gone"

[ "$failures" -eq 0 ] || exit 1
echo "PASSED"
