#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: flags, exit codes, Ctrl-C, --resume.
# usage: main_test.sh DQN_CARTPOLE

set -u
program=$1
work=${TEST_TMPDIR:?}/main_test
rm -rf "$work"
mkdir -p "$work"
failures=0

# A run small enough for an unoptimised build.
tiny="--lanes=4 --frames_per_batch=16 --init_random_frames=64 --capacity=200
--batch_size=8 --updates_per_batch=2 --probe_every=64 --probe_episodes=2
--evaluation_episodes=3 --max_steps=512"

fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
}

# expect NAME CODE TEXT COMMAND...: exit code, and TEXT in what it prints.
expect() {
  name=$1 want=$2 text=$3
  shift 3
  "$@" >"$work/out" 2>&1
  code=$?
  [ "$code" -eq "$want" ] || fail "$name: exit code $code, want $want"
  grep -qF -- "$text" "$work/out" || {
    fail "$name: no '$text' in:"
    cat "$work/out" >&2
  }
}

last_line_is() {
  tail -n 1 "$work/out" | grep -q "^$2" ||
    fail "$1: the last line is '$(tail -n 1 "$work/out")', want '$2...'"
}

# The curve without its columns of wall time.
curve() { cut -d, -f1-10 "$1/curve.csv"; }

expect "help explains flags" 0 "--final_epsilon" "$program" --help
expect "unknown flag" 1 "sede" "$program" --sede=1
expect "not a number" 1 "three" "$program" --seed=three
expect "out of range" 1 "--gamma: got 2, want a value in [0, 1]" \
  "$program" --gamma=2
expect "left-over word" 1 'got the word "seed"' "$program" seed
expect "nothing to resume" 1 "NOT_FOUND" \
  "$program" --resume --run_dir="$work/none"
[ ! -e "$work/none" ] || fail "a failed resume made a folder"

# shellcheck disable=SC2086  # $tiny is several words.
{
  expect "not solved" 1 "environment" "$program" $tiny --run_dir="$work/a"
  last_line_is "not solved" "not solved: seed 0, 512 steps, "
  expect "solved" 0 "learn" "$program" $tiny --solve_return=1 \
    --run_dir="$work/b"
  last_line_is "solved" "solved: seed 0, 64 steps, "
  expect "folder in use" 1 "go on with --resume" \
    "$program" $tiny --run_dir="$work/a"
  expect "other flags on resume" 1 "started with --lanes=4" \
    "$program" --resume --lanes=8 --run_dir="$work/a"

  # Ctrl-C: the run says its first line, is interrupted, saves and ends well.
  mkfifo "$work/pipe"
  "$program" $tiny --max_steps=100000000 --run_dir="$work/c" \
    >"$work/pipe" 2>&1 &
  pid=$!
}
{
  read -r first && read -r second && kill -INT "$pid"
  cat
} <"$work/pipe" >"$work/out"
wait "$pid"
code=$?
[ "$code" -eq 0 ] || fail "Ctrl-C: exit code $code, want 0"
last_line_is "Ctrl-C" "interrupted: seed 0, "

# It goes on to the curve of a run that was never interrupted.
stopped=$(sed -n 's/^interrupted: seed 0, \([0-9]*\) steps.*/\1/p' "$work/out")
end=$(((stopped / 64 + 3) * 64))
expect "resume" 1 "resumed at step $stopped" \
  "$program" --resume --max_steps="$end" --run_dir="$work/c"
last_line_is "resume" "not solved: seed 0, $end steps, "
# shellcheck disable=SC2086
expect "straight" 1 "not solved" \
  "$program" $tiny --max_steps="$end" --run_dir="$work/d"
curve "$work/c" >"$work/c.csv"
curve "$work/d" >"$work/d.csv"
cmp "$work/c.csv" "$work/d.csv" || fail "the resumed curve is another one"

[ "$failures" -eq 0 ] || exit 1
echo "PASSED"
