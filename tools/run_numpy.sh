#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# For sh_test: runs a Python program with the first interpreter that has NumPy:
# $RILL_PEER_PYTHON (--test_env=RILL_PEER_PYTHON=...), python3, Debian's. Where
# none has, with python3; the program's tests then say that they are skipped.
for python in "${RILL_PEER_PYTHON:-}" python3 /usr/bin/python3; do
  if [ -n "$python" ] && "$python" -c "import numpy" 2>/dev/null; then
    exec "$python" -B "$@"
  fi
done
exec python3 -B "$@"
