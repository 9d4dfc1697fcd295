#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One engine's table as a user meets it, and what its program refuses.
# usage: distributed_test.sh DISTRIBUTED_TABLE COMMAND [ARG]...

set -u
table_py=$1
shift
failures=0
# Ranks of Open MPI that wait leave the processor to others.
export OMPI_MCA_mpi_yield_when_idle=1

fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
}

line=$("$@" fast 2>&1)
[ $? -ne 0 ] || fail "an unknown side is taken: $line"
echo "$line" | grep -q 'got "fast", want bare, table or rill' || fail "it is not named: $line"
table=$(python3 -B "$table_py" --quick Engine "$@") || fail "it ends with an error: $table"
[ "$(echo "$table" | grep -cE ' +[0-9]+ MB/s +[0-9]+ MB/s +[0-9]+ MB/s +[0-9]+\.[0-9]+ +[0-9]+\.[0-9]+$')" -eq 4 ] ||
  fail "not four rates: $table"
[ "$(echo "$table" | grep -cE ' +[0-9.]+ us +[0-9.]+ us +[0-9.]+ us +[0-9]+\.[0-9]+ +[0-9]+\.[0-9]+$')" -eq 2 ] ||
  fail "not two times: $table"
[ "$(echo "$table" | grep -cE '^  learner, .*: waits +[0-9.]+ %$')" -eq 2 ] ||
  fail "not two learners: $table"

echo "$((5 - failures)) of 5 cases passed"
[ "$failures" -eq 0 ]
