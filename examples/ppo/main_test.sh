#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: flags, files, exit codes.
# usage: main_test.sh PPO_CART_POLE

set -u
program=$1
work=${TEST_TMPDIR:?}/main_test
rm -rf "$work"
mkdir -p "$work"
failures=0

# A run small enough for an unoptimised build.
tiny="--lanes=4 --steps_per_round=16 --total_steps=512 --epochs=2
--evaluation_episodes=3 --log_every=64"

# expect NAME CODE TEXT COMMAND...: exit code, and TEXT in what it prints.
expect() {
  name=$1 want=$2 text=$3
  shift 3
  "$@" >"$work/out" 2>&1
  code=$?
  if [ "$code" -ne "$want" ] || ! grep -qF -- "$text" "$work/out"; then
    echo "FAILED: $name: exit code $code, want $want, and '$text' in:" >&2
    cat "$work/out" >&2
    failures=$((failures + 1))
  fi
}

# $tiny is several words.
# shellcheck disable=SC2086
{
  expect "help" 0 "--learning_rate=" "$program" --help
  expect "unknown flag" 1 "--sede" "$program" --sede=1
  expect "not solved" 1 "not solved: seed 2," \
    "$program" $tiny --seed=2 --run_dir="$work/run"
  expect "time split" 1 "all but policy and learning takes" "$program" $tiny
  expect "solved" 0 "solved: seed 0," "$program" $tiny --solve_return=1
  expect "folder exists" 1 "want a new folder" \
    "$program" $tiny --run_dir="$work/run"
}
for file in curve.csv curve.svg; do
  [ -s "$work/run/$file" ] || {
    echo "FAILED: no $file" >&2
    failures=$((failures + 1))
  }
done
exit "$((failures > 0))"
