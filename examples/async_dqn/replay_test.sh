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

# With another seed it is another run, and with half of its bytes a part of it.
"$2" "$work/log" --seed=6 >"$work/again" 2>&1 && fail "another run is taken for it"
grep -q "this is not the same run" "$work/again" || fail "the difference is not named"
bytes=$(wc -c <"$work/log")
head -c $((bytes / 2)) "$work/log" >"$work/half"
"$2" "$work/half" >"$work/again" 2>&1 || fail "half is not repeated: $(cat "$work/again")"
grep -q "up to the end of the log" "$work/again" || fail "half has no end"

"$2" "$work/none" 2>/dev/null && fail "a missing log is no error"
"$2" "$work/log" --program="$work/none" 2>/dev/null && fail "a missing program is no error"
echo PASSED
