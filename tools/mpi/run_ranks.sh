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
# Open MPI names its shared memory by host and process id. In namespaces of
# their own, as tests and containers have, two jobs have the same id, and each
# then writes over the other's.
memory=$(mktemp -d /dev/shm/mpi.XXXXXX) || memory=$TMPDIR
trap 'rm -rf "$TMPDIR" "$memory"' EXIT
export OMPI_MCA_btl_vader_backing_directory="$memory" # Open MPI 4.
export OMPI_MCA_btl_sm_backing_directory="$memory"    # Open MPI 5.
status=0
# shellcheck disable=SC2086 # Words of their own.
"$mpirun" $options -n "$ranks" "$@" || status=$?
exit "$status"
