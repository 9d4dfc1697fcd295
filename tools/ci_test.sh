#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci_test.sh CI_RUN LIB: the stages of .ci/run are counted and timed, one that
# breaks off is a failure, those behind the suite are skipped when the time is
# used up, and the next run begins where the last one passed.
# The tools that it calls are stand-ins.
set -euo pipefail
if ! command -v git >/dev/null; then
  echo "there is no git, which .ci/run asks what changed"
  exit 0
fi

root=$TEST_TMPDIR/rill
export HOME=$root/home XDG_CACHE_HOME=$root/home/cache CALLS=$root/home/calls
mkdir -p "$root/.ci" "$root/tools" "$HOME" "$root/path"
cp -L "$1" "$root/.ci/run"
cp -L "$2" "$root/tools/lib.sh"
cd "$root"

# put NAME COUNTS: a tool that counts tests so; none where COUNTS is empty.
put() {
  printf '#!/bin/sh\necho "%s $*" >>"$CALLS"\n[ -z "%s" ] || echo "%s" >>"$RILL_COUNTS_FILE"\n' \
    "$1" "$2" "$2" >"tools/$1"
  chmod +x "tools/$1"
}
put test "5 0 1"
put sanitize "3 0 0"
put wheel "7 0 0"
put peer_exchange "0 0 0"
put dropins "0 0 0"
printf '#!/bin/sh\n[ "$1" != --mpi ] || [ ! -e "$HOME/no_pip" ]\n' >tools/setup
printf '#!/bin/sh\n[ "$1" != --version ] || echo "bazel no_version"\n[ "$1" != query ] || echo "//device/cuda:a_test"\n[ "$1" != fetch ] || [ ! -e "$HOME/no_pip" ]\n' \
  >path/bazel
mkdir -p tools/gymnasium tools/flight
echo gymnasium >tools/gymnasium/requirements.txt
echo pyarrow >tools/flight/python_requirements.txt
real_python=$(command -v python3)
cat >path/python3 <<STAND_IN
#!/bin/sh
[ "\$1 \$2" = "-m pip" ] || exec "$real_python" "\$@"
[ ! -e "\$HOME/no_pip" ] || exit 1
while [ "\$1" != --target ]; do shift; done
mkdir -p "\$2"
STAND_IN
chmod +x path/python3
cat >tools/reached_tests.py <<'PYTHON'
import os, sys
print("reached " + " ".join(sys.argv[1:3]), file=open(os.environ["CALLS"], "a"))
print("//a:reached_test")
PYTHON
chmod +x tools/setup path/bazel
PATH=$root/path:$PATH
printf 'home/\npath/\n' >.gitignore
git init -q .
git config user.name a
git config user.email a@b

# run WANT_STATUS: a run on a new commit; its output is in home/out.
run() {
  local got=0
  rm -f "$CALLS"
  git add -A
  git commit -q --allow-empty -m change
  bash .ci/run </dev/null >home/out 2>&1 || got=$?
  [ "$got" -eq "$1" ] || { cat home/out; echo "ended with $got, want $1"; exit 1; }
}

# want FILE PATTERN: a line of the file is like that.
want() {
  grep -qE -- "$2" "$1" || { cat "$1"; echo "want a line like \"$2\""; exit 1; }
}

run 0
want home/out "^65 passed, 0 failed, 9 skipped$"
[ "$(tail -n 1 home/out)" = "65 passed, 0 failed, 9 skipped" ]
for name in suite cuda mujoco gymnasium torch onnx flight mpi python asan_ubsan tsan exchange dropins asan_python; do
  want home/out "^$name +[0-9]+ s +[0-9]+ passed +0 failed"
done
want "$CALLS" "^test --config=cuda //device/cuda:a_test testing/consumer//:named_cuda_labels_test$"
want "$CALLS" "^test --config=mujoco --test_env=RILL_GYMNASIUM_PATH=[^ ]* //envs/mujoco/... //examples/ppo:half_cheetah_task_test testing/consumer//:mujoco_task_test testing/consumer//:named_mujoco_labels_test$"
want "$CALLS" "^test --test_env=RILL_GYMNASIUM_PATH=.*/gymnasium/[0-9a-f]+ //envs/gymnasium:real_package_test$"
want "$CALLS" "^test --config=torch --test_env=RILL_GYMNASIUM_PATH=[^ ]* //libtorch/... //examples/torch_loop/... .*//tools/layering:libtorch_law testing/consumer//:torch_batch_test testing/consumer//:named_torch_labels_test$"
want "$CALLS" "^test --config=onnx //onnx/... //tools/layering:onnx_law testing/consumer//:onnx_model_test testing/consumer//:named_onnx_labels_test$"
want "$CALLS" "^test --config=flight --test_env=RILL_PYARROW_PATH=[^ ]* //distributed/arrow/... .*//distributed/flight/... .*//examples/distributed_dqn:processes_test .*//tools/layering:distributed_arrow_arrow_batch_law .*"
want "$CALLS" "^test --config=mpi //distributed/transport/mpi/... .*//tools/layering:distributed_transport_mpi_mpi_transport_law testing/consumer//:named_mpi_labels_test$"
want "$CALLS" "^test --config=python //tools/layering:python_law$"
want "$CALLS" "^wheel --test$"
want "$CALLS" "^wheel --mujoco --test python/tests/mujoco_test.py$"
! grep -q "^wheel --test --sanitizer" "$CALLS"
want "$CALLS" "^dropins --install$"
want "$CALLS" "^reached --base= "
want "$CALLS" "^sanitize asan_ubsan --copt=-O0 //a:reached_test$"
passed_commit=$(git rev-parse HEAD)

# Without the toolkit its targets are skipped, and said to be.
touch "$HOME/no_pip"
rm -rf "$XDG_CACHE_HOME"/rill/gymnasium
run 0
want home/out "cuda: SKIPPED"
want home/out "mujoco: SKIPPED"
want home/out "gymnasium: SKIPPED"
want home/out "torch: SKIPPED, pip could not fetch the library \(553 MB\)"
want home/out "onnx: SKIPPED, the library"
want home/out "flight: SKIPPED, pip could not fetch Arrow"
want home/out "mpi: SKIPPED, apt-get could not install"
want home/out "python: SKIPPED, pip could not fetch nanobind"
want home/out "^11 passed, 0 failed, 9 skipped$"
rm "$HOME/no_pip"
passed_commit=$(git rev-parse HEAD)

# Counted from the commit that passed, also after one that did not.
put sanitize ""
run 1
want home/out "^59 passed, 2 failed, 9 skipped$"
want "$CALLS" "^reached --base=$passed_commit "
want "$CALLS" "^sanitize asan_ubsan //a:reached_test$"
put sanitize "3 0 0"
run 0
want "$CALLS" "^reached --base=$passed_commit "
run 0
want "$CALLS" "^reached --base=$(git rev-parse HEAD~1) "
RILL_CI_BASE=somewhere run 0
want "$CALLS" "^reached --base=somewhere "

# A change of the bindings.
mkdir python
touch python/bindings.cc
run 0
want "$CALLS" "^wheel --test --sanitizer=asan_ubsan$"
want home/out "^72 passed, 0 failed, 9 skipped$"

# A change that reaches no test.
: >tools/reached_tests.py
run 0
want home/out "^59 passed, 0 failed, 9 skipped$"
want home/out "tsan: the change reaches no test"

# Behind the suite nothing begins when the time is used up, and no commit passes.
passed_commit=$(git rev-parse HEAD)
RILL_CI_SECONDS=0 run 0
for name in cuda mujoco gymnasium torch onnx flight mpi python asan_ubsan tsan exchange dropins asan_python; do
  want home/out "$name: SKIPPED, the run has taken [0-9]+ s of 0"
done
want home/out "^5 passed, 0 failed, 14 skipped$"
! grep -q "^sanitize" "$CALLS"
want "$XDG_CACHE_HOME/rill/ci_passed_commit" "^$passed_commit$"
