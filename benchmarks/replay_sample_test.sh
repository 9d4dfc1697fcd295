#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The lines of the program that benchmarks/python/replay_speed.py reads.
# usage: replay_sample_test.sh REPLAY_SAMPLE_MAIN

lines=$("$1" --quick) || exit 1
if [ "$(echo "$lines" | grep -cE '^(47|3072) [0-9]+\.[0-9]+$')" -ne 2 ]; then
  echo "got \"$lines\", want a line for 47 and one for 3072 bytes" >&2
  exit 1
fi
