#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run_ranks_test.sh RUN_RANKS
#
# Two jobs at a time share no memory, though namespaces give them the same
# process id; a job leaves nothing behind, and its status is kept.
set -eu

run_ranks=$PWD/$1
cd "$TEST_TMPDIR"
cat > mpirun << 'END'
#!/bin/sh
if [ "$1" = --version ]; then
  echo "mpirun (Open MPI) 4"
  exit
fi
echo "$OMPI_MCA_btl_vader_backing_directory"
echo "$OMPI_MCA_btl_sm_backing_directory"
test -w "$OMPI_MCA_btl_vader_backing_directory"
exit 7
END
chmod +x mpirun
status=0
first=$(sh "$run_ranks" ./mpirun 2 true) || status=$?
second=$(sh "$run_ranks" ./mpirun 2 true) || true
fail() {
  echo "run_ranks_test: $1: got $first, then $second" >&2
  exit 1
}
[ "$status" -eq 7 ] || fail "exit status $status, want 7"
[ "$first" != "$second" ] || fail "both jobs have the same memory"
[ "$(echo "$first" | sort -u | wc -l)" -eq 1 ] || fail "two directories"
[ -n "$first" ] || fail "no directory"
[ ! -e "$(echo "$first" | head -n 1)" ] || fail "the job's memory is left"
