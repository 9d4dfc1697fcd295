#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its tables, and what it refuses.
# usage: collectors_test.sh COLLECTORS_MAIN

set -u
program=$1
failures=0

fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
}

line=$("$program" --fast 2>&1)
[ $? -eq 1 ] || fail "an unknown flag is taken: $line"
table=$("$program" --quick) || fail "it ends with an error: $table"
[ "$(echo "$table" | grep -cE ' +[0-9]+\.[0-9]+ M frames/s( +[0-9.]+)?$')" -eq 9 ] ||
  fail "not nine speeds: $table"
[ "$(echo "$table" | grep -cE ' +[0-9]+\.[0-9]+ ns a row$')" -eq 2 ] ||
  fail "not two costs of a hand-over: $table"

echo "$((3 - failures)) of 3 cases passed"
[ "$failures" -eq 0 ]
