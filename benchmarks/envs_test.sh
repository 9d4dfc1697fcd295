#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its tables, and what it refuses.
# usage: envs_test.sh ENVS_MAIN

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
[ "$(echo "$table" | sed '/^GymnasiumEnv/,$d' | grep -cE ' +[0-9]+\.[0-9]+ M frames/s$')" -eq 12 ] ||
  fail "not twelve speeds: $table"
[ "$(echo "$table" | grep -cE ' +[0-9]+\.[0-9]+ ns a frame +[+-][0-9]+\.[0-9]+$')" -eq 7 ] ||
  fail "not seven costs: $table"
echo "$table" | grep -qE 'GymnasiumEnv: skipped: .|two children +[0-9]' ||
  fail "neither speeds of GymnasiumEnv nor why there are none: $table"

echo "$((4 - failures)) of 4 cases passed"
[ "$failures" -eq 0 ]
