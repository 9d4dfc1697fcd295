#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu_check_test.sh GPU_CHECK LIB RUN_BUNDLE CUDA_SPEED TEST ...: from the packing to the
# report, on the fake device. Bazel is a stand-in that has built the tests.
set -euo pipefail

root=$TEST_TMPDIR/rill
mkdir -p "$root/tools/gpu" "$root/tools/peer" "$root/path" "$root/bin/tools/gpu"
cp -L "$1" "$2" "$root/tools/"
cp -L "$3" "$root/tools/gpu/"
cp -L "$4" "$root/tools/peer/"
shift 4
export HOME=$root XDG_CACHE_HOME=$root/cache BIN=$root/bin LABELS=$root/labels
printf '#!/bin/sh\n' >"$root/tools/setup"
for test in "$@"; do
  cp -L "$test" "$root/bin/tools/gpu/$(basename "$test")"
  echo "//tools/gpu:$(basename "$test")" >>"$LABELS"
done
cat >"$root/bin/tools/gpu/b_cuda_benchmark" <<'BENCHMARK'
#!/bin/sh
echo "----------"
echo "ReadColumns/HalfCheetah/256/real_time       7.50 us         7.40 us        90000"
echo "Copy/pinned/1000/real_time                  2.00 ms         2.00 ms          300"
BENCHMARK
cat >"$root/path/bazel" <<'BAZEL'
#!/bin/sh
case $1 in
  --version) echo "bazel no_version" ;;
  query) case $* in *requires-gpu*) cat "$LABELS" ;; *) echo //tools/gpu:b_cuda_benchmark ;; esac ;;
  info) echo "$BIN" ;;
esac
BAZEL
# What a machine with a GPU has.
cat >"$root/path/nvidia-smi" <<'SMI'
#!/bin/sh
echo "Fake GPU, 1 MiB, 1.0"
SMI
cat >"$root/path/compute-sanitizer" <<'SANITIZER'
#!/bin/sh
echo "========= ERROR SUMMARY: 0 errors"
SANITIZER
cat >"$root/path/python3" <<'TORCH'
#!/bin/sh
case $1 in -c) exit 0 ;; esac
echo "2.11.0 Fake GPU"
echo "ReadColumns/HalfCheetah/256        75.0 us       1.0 GB/s"
TORCH
chmod +x "$root"/tools/setup "$root"/path/* "$root"/bin/tools/gpu/*
PATH=$root/path:$PATH

die() { echo "$*" >&2; cat "$root/report.md" "$root/out" >&2 || true; exit 1; }
has() { grep -qE -- "$1" "$root/report.md" || die "the report has no line \"$1\""; }

"$root/tools/gpu_check" "$root/packed" >"$root/out" 2>&1 || die "it does not pack"
mkdir "$root/there"
tar -C "$root/there" -xzf "$root/packed/gpu_check.tar.gz"
"$root/there/gpu_check/run" "$root/report.md" >"$root/out" 2>&1 || die "a test failed"
has '^# GPU suite on Fake GPU, '
has '^[1-9][0-9]* cases passed, 0 failed, 0 were skipped\.$'
for test in "$@"; do has "^\| .tools/gpu:$(basename "$test"). \| [1-9][0-9]* \| 0 \| 0 \|"; done
has '^- memcheck of .tools/gpu:[a-z_]*.: ERROR SUMMARY: 0 errors$'
has '^\| ReadColumns/HalfCheetah/256 \| 7.5 \| 75.0 \| 10.00 \|$'
has '^\| Copy/pinned/1000 \| 2000.0 \| \| \|$'

# A program that fails, and time that is up, are in the report and the status.
printf '#!/bin/sh\necho "x.cc:3: Failure"\necho "[  FAILED  ] 2 tests, listed below:"\nexit 1\n' \
  >"$root/there/gpu_check/programs/tools.gpu.bad"
chmod +x "$root/there/gpu_check/programs/tools.gpu.bad"
echo "test tools/gpu:bad tools.gpu.bad" >"$root/there/gpu_check/programs.txt"
! "$root/there/gpu_check/run" "$root/report.md" >"$root/out" 2>&1 || die "a failure is a success"
has '^0 cases passed, 2 failed'
has '^- .tools/gpu:bad. ended with 1:$'
! RILL_GPU_SECONDS=0 "$root/there/gpu_check/run" "$root/report.md" >"$root/out" 2>&1 || die "no time is a success"
has 'was not run: the time was up'
