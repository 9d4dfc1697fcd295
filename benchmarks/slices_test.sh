#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its last line, and what it refuses.
# usage: slices_test.sh SLICES_MAIN

set -u
program=$1
failures=0

fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
}

line=$("$program" --stored=30000 --capacity=20000 --samples=5 2>&1)
[ $? -eq 1 ] || fail "more rows than the capacity are taken: $line"
line=$("$program" --slice=3 2>&1)
[ $? -eq 1 ] || fail "an unknown flag is taken: $line"
# A ring that is nearly full, so that the writes go around it.
line=$("$program" --stored=30000 --capacity=32000 --samples=20 | tail -n 1)
number='[0-9]+\.[0-9]+'
echo "$line" | grep -qE "^$number ms per sample while writing, $number ms per sample without, $number us per write\$" ||
  fail "the last line is: $line"

echo "$((3 - failures)) of 3 cases passed"
[ "$failures" -eq 0 ]
