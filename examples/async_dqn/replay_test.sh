#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A run that is recorded, whose workers are killed, is repeated by replay_run.
# usage: replay_test.sh ASYNC_DQN REPLAY_RUN
set -u
work=${TEST_TMPDIR:?}/replay
mkdir -p "$work"
fail() {
  echo "$1" >&2
  exit 1
}

"$1" --workers=3 --seed=5 --kill_every=20ms --at_least=0s --max_frames=1600 \
  --record="$work/log" --replay="$work/rows" >"$work/run" 2>/dev/null
grep -q "^not solved" "$work/run" || fail "the run has not ended: $(cat "$work/run")"

"$2" "$work/log" >"$work/again" 2>&1 || fail "not repeated: $(cat "$work/again")"
grep -q "^repeated: [0-9]* events, all equal" "$work/again" ||
  fail "nobody says so: $(cat "$work/again")"

# With another seed it is another run.
"$2" "$work/log" --seed=6 >"$work/again" 2>&1 && fail "another run is taken for it"
grep -q "this is not the same run" "$work/again" || fail "the difference is not named"
bytes=$(wc -c <"$work/log")
# damage LOG REPLAY_RUN: it is no whole one.
damage() {
  "$2" "$1" >"$work/again" 2>&1 && fail "$1: a damaged log is taken for a whole one"
  grep -q "bytes behind them that are no whole event" "$work/again" || fail "$1: $(cat "$work/again")"
  grep -q "all equal, up to the end" "$work/again" && fail "$1: it says that all is equal"
}
head -c $((bytes - 3)) "$work/log" >"$work/cut"
damage "$work/cut" "$2"
cp "$work/log" "$work/changed"
for i in 1 2 3 4 5 6 7 8; do
  printf 'changed!'
done | dd of="$work/changed" bs=1 seek=$((bytes / 2)) conv=notrunc 2>/dev/null
damage "$work/changed" "$2"

"$2" "$work/none" 2>/dev/null && fail "a missing log is no error"
"$2" "$work/log" --program="$work/none" 2>/dev/null && fail "a missing program is no error"
echo PASSED
