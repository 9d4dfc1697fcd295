#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# torch_loop_test.sh PROGRAM SOURCE PAGE: the program learns CartPole (a return
# of 20 is that of random actions), and the page shows its source word for word.
set -eu
out=$("$1")
mean=$(echo "$out" | sed -n 's/^20 episodes: mean return \([0-9]*\)\..*/\1/p')
[ "${mean:-0}" -ge 150 ] || { echo "want a mean return of 150: $out" >&2; exit 1; }
# The first cpp block of the page, against the source without its first line.
awk '/^```cpp$/ { on = 1; next } /^```$/ { if (on) exit } on' "$3" >"$TEST_TMPDIR/page.cc"
tail -n +2 "$2" >"$TEST_TMPDIR/source.cc"
diff -u "$TEST_TMPDIR/source.cc" "$TEST_TMPDIR/page.cc"
