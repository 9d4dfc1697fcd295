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
. testing/expect_program.sh

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
expect "no Gymnasium" 1 "none\": No such file" --gymnasium=Count-v0 --python="$work/none"

expect "unknown environment" 1 "want one of CartPole-v1" --env=Cart
expect "unknown flag" 1 'got "--stpes=3"' --stpes=3
expect "no number" 1 'got "--steps=x"' --steps=x
expect "no steps" 1 'got "--steps=0"' --steps=0
expect "unknown format" 1 'got "--format=gif"' --format=gif
"$program" >/dev/full 2>"$work/err" && fail "a full disk is no error"

[ "$failures" -eq 0 ] || exit 1
echo "PASSED"
