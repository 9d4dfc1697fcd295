#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program draws four of the last eight poses, x in [6, 9.5], and says so.
set -eu
"$1" | awk '
  { lines++; if ($1 != "slot" || $4 < 6 || $4 > 9.5 || $6 != -$4) bad++; print }
  END { if (lines != 4 || bad) { print "want 4 poses with x in [6, 9.5], y = -x"; exit 1 } }'
