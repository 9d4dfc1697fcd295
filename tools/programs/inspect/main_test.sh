#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: its words, its exit codes, one line of error.
# usage: main_test.sh INSPECT

set -u
program=$1
work=${TEST_TMPDIR:?}/main_test
rm -rf "$work"
mkdir -p "$work"
# Not links, which loading refuses.
cp -rL formats/testdata/tensordict "$work/peer"
cp -rL formats/torchrl/testdata/replay_buffer "$work/torchrl"
. testing/expect_program.sh

expect "help" 0 "--values" --help
expect "table" 0 "next/reward  float64" "$work/peer/A"
expect "table of values" 0 "0 1 2 3 ..." "$work/peer/A" --values
expect "JSON" 0 '"u8":{"dtype":"uint8","shape":[3]}' --json "$work/peer/A"
expect "JSON of values" 0 '"values":[0,1,2,3,4,5]' --json --values "$work/peer/A"
python3 -c 'import json, sys; json.load(sys.stdin)' <"$work/out" ||
  fail "the JSON is not one"
expect "archive" 0 ".tdz archive, batch [3], 10 tensors" "$work/peer/I.tdz"
expect "deflated archive" 0 ".tdz archive, batch [3], 11 tensors" "$work/peer/N.tdz"
expect "consolidated" 0 "consolidated file, batch [3], 9 tensors" "$work/peer/J.bin"
expect "pickles are refused, the rest is shown" 0 "refused: obj: " "$work/peer/D"
grep -qF "float32" "$work/out" || fail "the rest is not shown"
expect "refused in JSON" 0 '"refused":{' --json "$work/peer/D"
expect "no path" 1 "--help"
expect "unknown flag" 1 "--jsno" "$work/peer/A" --jsno
expect "two paths" 1 "want one path" "$work/peer/A" "$work/peer/C"
expect "nothing there" 1 "NOT_FOUND" "$work/none"
expect "unknown kind" 1 "want a memmap directory" "$work"

printf 'short' >"$work/peer/A/obs.memmap"
expect "truncated" 1 "DATA_LOSS" --json "$work/peer/A"
for file in I.tdz J.bin; do
  head -c 300 "$work/peer/$file" >"$work/cut_$file"
  expect "truncated $file" 1 "$work/cut_$file" "$work/cut_$file"
done
printf '{"_type":' >"$work/peer/A/meta.json"
expect "broken meta" 1 "meta.json" "$work/peer/A"
printf '{"_type":"<class \\"\\n\\u001b[2J>"}' >"$work/peer/A/meta.json"
expect "hostile meta" 1 "want a TensorDict" "$work/peer/A"

expect "TorchRL's buffer" 0 "5 live of 8 slots in 1 lane" "$work/torchrl/a"
expect "TorchRL's buffer in JSON" 0 '"rows":{"live":5,"slots":8,' --json --all "$work/torchrl/a"
python3 -c 'import json, sys; json.load(sys.stdin)' <"$work/out" ||
  fail "the JSON of a buffer is not one"

cp -L recorder/testdata/fuzz/flight_log/documented "$work/log"
expect "flight log" 0 "flight log, begun 1970-01-01" "$work/log"
grep -qF "0 publish" "$work/out" || fail "the timeline has no line"
expect "events of a flight log" 0 "publish of part 0: 3 (digest 0x12345678)" "$work/log" --values
expect "no JSON of a flight log" 1 "want none" "$work/log" --json
expect "watch" 0 "weights                   1, " --watch "$work/log" "$work/torchrl/a" "$work/none" --looks=2 --every=0 --html="$work/page.html"
grep -qF "live rows                 5 of 8 in 1 lanes" "$work/out" || fail "no rows are watched"
grep -qF "NOT_FOUND" "$work/out" || fail "a missing path is not said"
grep -qF "</html>" "$work/page.html" || fail "the page is not whole"
expect "no looks" 1 "--looks=0" --watch "$work/log" --looks=0

# What is damaged is said, the rest is there, and the status tells.
printf 'short' >"$work/torchrl/a/storage/obs.memmap"
"$program" --json "$work/torchrl/a" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "damage is no error"
grep -q '^DATA_LOSS: ' "$work/err" || fail "damage has no code"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line of error"
grep -qF '"damage":["' "$work/out" || fail "the damage is not in the JSON"
grep -qF '"live":5' "$work/out" || fail "the rest is not shown"

"$program" "$work/peer/C" >/dev/full 2>"$work/err" && fail "a full disk is no error"

[ "$failures" -eq 0 ] || exit 1
echo "PASSED"
