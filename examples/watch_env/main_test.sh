#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its words, its files, one line of error.
# usage: main_test.sh WATCH_ENV

set -u
program=$1
work=${TEST_TMPDIR:?}/main_test
rm -rf "$work"
mkdir -p "$work"
failures=0

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" "$work/err" >&2
  failures=$((failures + 1))
}

# expect NAME CODE TEXT ARG...: exit code, TEXT in what it prints where the code
# is 0, else in its only line of error.
expect() {
  name=$1 want=$2 text=$3
  shift 3
  "$program" "$@" >"$work/out" 2>"$work/err"
  code=$?
  [ "$code" -eq "$want" ] || fail "$name: exit code $code, want $want"
  if [ "$want" -eq 0 ]; then
    grep -qF -- "$text" "$work/out" || fail "$name: no '$text'"
    [ ! -s "$work/err" ] || fail "$name: an error line"
  else
    grep -qF -- "$text" "$work/err" || fail "$name: no '$text'"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$name: not one line of error"
    [ ! -s "$work/out" ] || fail "$name: output beside the error"
  fi
}

expect "help" 0 "--gymnasium=ID" --help
expect "an episode" 0 "CartPole-v1, step 0"
expect "another" 0 ", terminated" --seed=3
expect "drawn" 0 "10 steps, return -10, on" --env=Acrobot-v1 --steps=10
[ "$(grep -c 'Acrobot-v1, step' "$work/out")" -eq 11 ] || fail "not each state once"
[ "$(grep -c "$(printf '\033')" "$work/out")" -eq 0 ] || fail "not plain characters"
for env in CartPole-v1 MountainCar-v0 MountainCarContinuous-v0 Acrobot-v1 Pendulum-v1; do
  expect "rollout of $env" 0 "next/observation" --env=$env --format=rollout --steps=1000
  grep -q '^     0 .* t[er][a-z]*ed$' "$work/out" || fail "no episode of $env"
done

expect "SVG" 0 "12 steps" --env=Pendulum-v1 --steps=12 --svg="$work/svg"
[ "$(ls "$work/svg" | wc -l)" -eq 14 ] || fail "not 13 frames and an episode"
python3 - "$work/svg" <<'PY' || fail "the SVG is no XML"
import pathlib, sys, xml.dom.minidom
for file in pathlib.Path(sys.argv[1]).iterdir():
    xml.dom.minidom.parse(str(file))
PY
expect "a shorter episode" 0 "5 steps" --env=Pendulum-v1 --steps=5 --svg="$work/svg"
[ "$(ls "$work/svg" | wc -l)" -eq 7 ] || fail "frames of the longer episode stay"
expect "SVG beside a rollout" 0 "episodes:" --format=rollout --svg="$work/both"
[ -s "$work/both/episode.svg" ] || fail "no SVG beside a rollout"

PYTHONPATH=envs/gymnasium/testdata expect "Gymnasium" 0 "Count-v0: rollout" \
  --gymnasium=Count-v0 --steps=5
PYTHONPATH=envs/gymnasium/testdata expect "no drawing" 1 "DrawEnv: got \"Count-v0\"" \
  --gymnasium=Count-v0 --format=text
expect "no Gymnasium" 1 "PythonChild::Start: cannot run" --gymnasium=Count-v0 --python="$work/none"

expect "unknown environment" 1 "want one of CartPole-v1" --env=Cart
expect "unknown flag" 1 'got "--stpes=3"' --stpes=3
expect "no number" 1 'got "--steps=x"' --steps=x
expect "no steps" 1 'got "--steps=0"' --steps=0
expect "unknown format" 1 'got "--format=gif"' --format=gif
"$program" >/dev/full 2>"$work/err" && fail "a full disk is no error"

[ "$failures" -eq 0 ] || exit 1
echo "PASSED"
