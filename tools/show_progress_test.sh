#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# show_progress of lib.sh on no terminal: what a long build is at, nothing of a
# short one, the status and the words of one that fails.
# usage: show_progress_test.sh LIB

set -u
lib=$(realpath "$1")
work=${TEST_TMPDIR:?}/show_progress
mkdir -p "$work"
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED: $1" >&2
  cat out err log >&2
  failures=$((failures + 1))
}

# run BODY: a build with this body, its flags in "$@".
run() {
  printf '#!/bin/bash\n%s\n' "$1" >build
  chmod +x build
  RILL_PROGRESS_SECONDS=${seconds:-0.1} bash -c '. "$1"; show_progress log ./build flag' name "$lib" \
    >out 2>err
}

# It goes on until the line that it waits for is there.
run 'echo "[3 / 1,200] Compiling a.cc; 4s"; echo "INFO: noise"
     until grep -q "1,200" err; do sleep 0.05; done; echo "$@" >flags'
[ $? -eq 0 ] || fail "a build that works has a status"
grep -qF "building: [3 / 1,200] Compiling a.cc; 4s" err || fail "no progress"
grep -qF noise err && fail "more than progress"
[ ! -s out ] || fail "something on standard output"
grep -qF -- "flag --curses=no" flags || fail "other flags"

seconds=1000 run 'exit 0'
[ ! -s err ] || fail "words of a short build"

run 'echo "ERROR: a.cc failed" >&2; exit 7'
[ $? -eq 7 ] || fail "another status"
grep -qF "ERROR: a.cc failed" log || fail "its words are not kept"

[ "$failures" -eq 0 ] || exit 1
echo "PASSED"
