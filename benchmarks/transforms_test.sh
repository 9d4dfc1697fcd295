#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its tables, and what it refuses.
# usage: transforms_test.sh TRANSFORMS_MAIN

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
[ "$(echo "$table" | grep -cE '[0-9]+\.[0-9]+ us +[0-9]+\.[0-9]+$')" -eq 12 ] ||
  fail "not twelve figures: $table"
[ "$(echo "$table" | grep -cE 'ns a lane and step +[+-][0-9.]+$')" -eq 3 ] ||
  fail "not three figures of lanes: $table"

echo "$((2 - failures)) of 2 cases passed"
[ "$failures" -eq 0 ]
