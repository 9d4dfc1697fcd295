#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# distributed_dqn as a job of Slurm: a learner, two shards and four collectors
# as ranks of MPI. A rank that dies ends the step, and the next one goes on from
# the last checkpoint; so does this job where it is submitted again.
# usage: sbatch deploy/slurm/distributed_dqn.sh PROGRAM RUN_DIR [FLAG...]
#   PROGRAM and RUN_DIR are there on all nodes.
#SBATCH --job-name=distributed_dqn
#SBATCH --ntasks=7
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=512M
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append
set -uo pipefail

if [ $# -lt 2 ]; then
  sed -n 6,7p "$0" | cut -c3- >&2
  exit 2
fi
program=$1 run_dir=$2
shift 2

# TERM@60 reaches the ranks a minute before the time is over: the learner ends
# the run in order, and srun says 0.
for attempt in $(seq "${RILL_ATTEMPTS:-10}"); do
  srun --mpi="${RILL_SRUN_MPI:-pmix}" --kill-on-bad-exit=1 "$program" --run_dir="$run_dir" --resume --shards=2 "$@" &&
    exit 0
  echo "attempt $attempt ended with $?" >&2
done
exit 1
