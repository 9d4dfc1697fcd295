#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# flaky_test.sh FLAKY LOAD LIB: each run is counted, beside a load that ends
# with it. Bazel and what counts its results are stand-ins.
set -euo pipefail

root=$TEST_TMPDIR/rill
export TMPDIR=$root/tmp CALLS=$root/calls
mkdir -p "$root/tools" "$root/path" "$TMPDIR"
cp -L "$1" "$root/tools/flaky"
cp -L "$2" "$root/tools/flaky_load.py"
cp -L "$3" "$root/tools/lib.sh"
printf '#!/bin/sh\n' >"$root/tools/setup"
# As bazel test does, this lasts until the load is there; the second run fails.
cat >"$root/path/bazel" <<'STAND_IN'
#!/bin/sh
[ "$1" != --version ] || { echo "bazel no_version"; exit; }
echo "$*" >>"$CALLS"
[ "$1" = test ] || exit 0
until "$(dirname "$0")/loads" >>"$CALLS.loads"; do :; done
[ "$(grep -c ^test "$CALLS")" -ne 2 ] || exit 3
STAND_IN
# Names the processes of loads of this test.
cat >"$root/path/loads" <<'STAND_IN'
#!/bin/sh
exec 2>/dev/null
found=1
for words in /proc/[0-9]*/cmdline; do
  ! tr '\0' ' ' <"$words" 2>/dev/null | grep "^[^ ]*python3 [^ ]*flaky_load.py --seed=[0-9]* $TMPDIR" || found=0
done
exit $found
STAND_IN
cat >"$root/tools/test_summary.py" <<'STAND_IN'
import sys
print("7 1 0" if sys.argv[1].startswith("3:") else "8 0 0")
STAND_IN
chmod +x "$root/tools/setup" "$root/path/bazel" "$root/path/loads" "$root/tools/flaky"
export PATH=$root/path:$PATH CI=true

if "$root/tools/flaky" 3 --config=x //a:all >"$root/out" 2>&1; then
  cat "$root/out"
  echo "a run that failed is not counted"
  exit 1
fi
grep -q "flaky: run 2 of 3: 7 passed, 1 failed" "$root/out"
[ "$(tail -n 1 "$root/out")" = "23 passed, 1 failed" ]
[ "$(grep -c '^test .*--nocache_test_results .*--config=x -- //a:all$' "$CALLS")" -eq 3 ]
# Nothing is left of any load.
[ -s "$CALLS.loads" ]
[ -z "$(ls "$TMPDIR")" ]
if loads; then
  echo "a load goes on"
  exit 1
fi
