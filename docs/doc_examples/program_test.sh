#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A program that a page shows, as it stands there: it ends with 0, and with the
# line LAST where one is given.
# usage: program_test.sh PROGRAM [LAST]

set -eu
out=$("$1") || {
  echo "FAILED: it ended with $?: $out" >&2
  exit 1
}
last=$(echo "$out" | tail -n 1)
[ $# -eq 1 ] || [ "$last" = "$2" ] || {
  echo "FAILED: got \"$last\", want \"$2\"" >&2
  exit 1
}
echo "1 of 1 cases passed"
