#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Three seconds of the soak: that it works, not that nothing grows.
# usage: soak_test.sh SOAK

set -u
line=$("$1" "${TEST_TMPDIR:-/tmp}" 3 | tail -n 1)
[ "$line" = "flat: no torn row, memory and descriptors stayed" ] || {
  echo "FAILED: the last line is: $line" >&2
  exit 1
}
echo "1 of 1 cases passed"
