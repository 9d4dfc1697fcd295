#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs_test.sh DOCS LIB: without Doxygen tools/docs --check is skipped by name,
# and counts as one that was; without --check it fails. Setup is a stand-in.
set -euo pipefail

root=$TEST_TMPDIR/rill
export HOME=$root XDG_CACHE_HOME=$root/cache
mkdir -p "$root/tools"
cp -L "$1" "$root/tools/docs"
cp -L "$2" "$root/tools/lib.sh"
printf '#!/bin/sh\nexit 1\n' >"$root/tools/setup"
chmod +x "$root/tools/setup" "$root/tools/docs"

"$root/tools/docs" --check "$root/site" >"$root/out" 2>&1 || true
[ "$(cat "$root/out")" = "docs: SKIPPED, apt-get could not install Doxygen
0 passed, 0 failed, 1 skipped" ] || { cat "$root/out"; exit 1; }
RILL_COUNTS_FILE=$root/counts "$root/tools/docs" --check "$root/site" >/dev/null || true
[ "$(cat "$root/counts")" = "0 0 1" ]
! "$root/tools/docs" "$root/site" 2>"$root/out"
[ "$(cat "$root/out")" = "docs: apt-get could not install Doxygen" ] || { cat "$root/out"; exit 1; }
