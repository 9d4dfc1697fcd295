#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run_ranks.sh MPIRUN RANKS PROGRAM [ARGUMENT]...
#
# Runs a program as a job on this machine, with more ranks than processors too.
# Exit status: the job's, which is not 0 where a rank's is not.
set -eu

mpirun=$1
ranks=$2
shift 2
# Open MPI refuses both of these unless it is told otherwise; MPICH knows
# neither option.
options=
if "$mpirun" --version 2>&1 | grep -qi 'open mpi\|open-mpi\|openrte'; then
  options="--oversubscribe --allow-run-as-root"
fi
# Sockets' names are short, and folders of tests are long.
TMPDIR=$(mktemp -d /tmp/mpi.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
status=0
# shellcheck disable=SC2086 # Words of their own.
"$mpirun" $options -n "$ranks" "$@" || status=$?
exit "$status"
