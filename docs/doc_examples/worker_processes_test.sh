#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program that docs/collectors.md shows, as it stands there.
# usage: worker_processes_test.sh WORKER_PROCESSES_MAIN

set -u
failures=0
got=$("$1")
[ "$got" = "65536 frames" ] || {
  echo "FAILED: got \"$got\", want \"65536 frames\"" >&2
  failures=1
}
echo "$((1 - failures)) of 1 cases passed"
[ "$failures" -eq 0 ]
