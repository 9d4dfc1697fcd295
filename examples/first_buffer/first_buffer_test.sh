#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# first_buffer_test.sh PROGRAM SOURCE PAGE: the program prints a batch of 32
# rows, and the page shows its source word for word.
set -eu
out=$("$1")
for want in 'observation' 'next' 'reward' '32'; do
  case "$out" in
    *"$want"*) ;;
    *) echo "the program's output lacks '$want': $out" >&2; exit 1 ;;
  esac
done
# The first cpp block of the page, against the source without its first line.
awk '/^```cpp$/ { on = 1; next } /^```$/ { if (on) exit } on' "$3" >"$TEST_TMPDIR/page.cc"
tail -n +2 "$2" >"$TEST_TMPDIR/source.cc"
diff -u "$TEST_TMPDIR/source.cc" "$TEST_TMPDIR/page.cc"
