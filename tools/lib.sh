# SPDX-License-Identifier: Apache-2.0
# What the commands in tools/ share. Source it: . "$(dirname "$0")/lib.sh"

rill_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rill_me=$(basename "$0")
rill_cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rill

say() { echo "$rill_me: $*"; }

# fail SENTENCE: what broke, and what to do about it.
fail() {
  echo "$rill_me: $*" >&2
  exit 1
}

# Sets `bazel` to the command to use; false if there is none. Debian's build of
# 4.2.3 calls itself no_version.
find_bazel() {
  local version
  bazel=
  if command -v bazel >/dev/null; then
    bazel=bazel
  elif command -v bazelisk >/dev/null; then
    bazel=bazelisk
    export USE_BAZEL_VERSION=${USE_BAZEL_VERSION:-7.7.1}
  else
    return 1
  fi
  version=$(cd "$rill_root" && "$bazel" --version 2>/dev/null | sed -n 's/^bazel //p')
  case "$version" in
    no_version | 4.2.3) bazel_kind=workspace ;;
    7.*) bazel_kind=module ;;
    *) fail "\"$bazel --version\" says \"${version:-nothing}\", want 4.2.3 or 7;" \
            "install Debian's bazel-bootstrap, or put Bazel 7.7.1 first on PATH" ;;
  esac
}

# Sets `python` to one that has the peer's packages; false if there is none.
# `peer_packages` is where `peer_exchange --install` puts those of
# `peer_wanted`.
find_peer() {
  peer_wanted=$rill_root/tools/peer/requirements.txt
  peer_packages=$rill_cache/peer/$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  if [ -n "${RILL_PEER_PYTHON:-}" ]; then
    python=$RILL_PEER_PYTHON
    "$python" -c 'import tensordict, torch' ||
      fail "RILL_PEER_PYTHON: \"$python\" has no tensordict, as shown; name another or unset it"
    return
  fi
  python=python3
  cmp -s "$peer_wanted" "$peer_packages/requirements.txt" || return 1
  export PYTHONPATH=$peer_packages${PYTHONPATH:+:$PYTHONPATH}
}

# outside_project PAGE NAME: makes the project that a page shows anew, word for
# word, beside a link to this tree, and sets `project` to its folder and
# `settings` to this machine's options for Bazel. The folder's name stays the
# same, so that Bazel finds what it built last time.
outside_project() {
  local page=$1 place consumer=
  place=$rill_cache/$2/$(echo "$rill_root" | cksum | cut -d' ' -f1)
  project=$place/project
  rm -rf "$project" && mkdir -p "$project" && ln -sfn "$rill_root" "$place/rill" ||
    fail "may not write to \"$place\""
  [ "$bazel_kind" = workspace ] || consumer=$rill_root/testing/consumer
  python3 -B "$rill_root/tools/readme/make_project.py" "$rill_root/$page" "$project" \
    ${consumer:+"$consumer"} >/dev/null || fail "$page has no such project"
  settings=()
  [ ! -s "$rill_root/user.bazelrc" ] || settings=(--bazelrc="$rill_root/user.bazelrc")
}

# How Bazel talks: a live display on a terminal, plain lines elsewhere.
bazel_output_flags() {
  if [ -t 2 ]; then
    echo "--show_progress_rate_limit=0.2"
  else
    echo "--curses=no --color=no --show_progress_rate_limit=30"
  fi
}

# A cache of build results that several output trees share (the consumer's and
# this one's; yesterday's and today's). One that user.bazelrc names is kept.
bazel_cache_flags() {
  grep -qs disk_cache "$rill_root/user.bazelrc" ||
    echo "--disk_cache=$rill_cache/disk_cache"
}

# How programs are built, the same for all: the next one finds what the last one
# has built. The config assumes AVX2 and FMA; a processor without them gets
# plain code.
program_flags=--config=opt
if [ -r /proc/cpuinfo ] && ! grep -qw avx2 /proc/cpuinfo; then
  program_flags=--compilation_mode=opt
fi

# prefer_built TARGET...: takes programs as the tests have built them, which is
# unoptimised, where they are there and optimised ones are not.
prefer_built() {
  local target path
  for target in "$@"; do
    path=bin/$(echo "${target#//}" | tr : /)
    ! compgen -G "$rill_root/bazel-out/*-opt/$path" >/dev/null || return 0
    compgen -G "$rill_root/bazel-out/*-fastbuild/$path" >/dev/null || return 0
  done
  program_flags=--compilation_mode=fastbuild
}

# Ends the Bazel server of this folder where nobody comes back to it: it would
# hold some 0.4 GB for three hours.
leave_bazel() {
  [ -z "${CI:-}" ] || "$bazel" shutdown >/dev/null 2>&1 || true
}

# show_progress LOG COMMAND...: the command, a build of Bazel's, and its status.
# On a terminal it shows its own live display there; elsewhere its words go to
# LOG, and what it is at to standard error every 30 seconds.
show_progress() {
  local log=$1 watcher at status=0
  shift
  if [ -t 2 ]; then
    "$@" --ui_event_filters=-info,-stdout --show_result=0 \
      --show_progress_rate_limit=0.2 >&2
    return
  fi
  # The command stays in front, where an interrupt reaches it.
  (while sleep "${RILL_PROGRESS_SECONDS:-30}" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    at=$(grep '^\[[0-9,]* / ' "$log" | tail -n 1)
    say "building: ${at:-Bazel starts}" >&2
  done) </dev/null &
  watcher=$!
  "$@" --curses=no --color=no --show_progress_rate_limit=10 >"$log" 2>&1 || status=$?
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null || true
  return "$status"
}

# build_programs [--FLAG...] TARGET...: builds them optimised and sets `programs`
# to their paths. All words go to standard error; where nothing is to be built
# and on no terminal there are none.
build_programs() {
  local target folder log is_first=
  "$rill_root/tools/setup" >&2
  find_bazel
  log=$(mktemp)
  folder=$(cd "$rill_root" && "$bazel" info "$program_flags" bazel-bin 2>"$log") ||
    { tail -n 5 "$log" >&2; fail "Bazel does not start, as shown"; }
  programs=()
  for target in "$@"; do
    [ "${target#--}" = "$target" ] || continue
    programs+=("$folder/$(echo "${target#//}" | tr : /)")
    [ -x "${programs[-1]}" ] || is_first=1
  done
  [ -z "$is_first" ] || say "building $* (about 5 minutes the first time on 2 cores)" >&2
  # shellcheck disable=SC2046
  (cd "$rill_root" && show_progress "$log" "$bazel" build "$program_flags" \
    $(bazel_cache_flags) "$@") || {
    cat "$log" >&2
    fail "the build failed as shown; if it is a fetch, run tools/setup again with a network"
  }
  rm -f "$log"
  (cd "$rill_root" && leave_bazel)
}

# close PASSED FAILED SKIPPED: the closing line and the exit status of a
# command that counts tests. A command that runs several of these collects the
# numbers in RILL_COUNTS_FILE instead and prints one line of its own.
close_with_counts() {
  local line="$1 passed, $2 failed"
  [ "$3" -eq 0 ] || line+=", $3 skipped"
  if [ -n "${RILL_COUNTS_FILE:-}" ]; then
    echo "$1 $2 $3" >> "$RILL_COUNTS_FILE"
    say "$line"
  else
    echo "$line"
  fi
  [ "$1" -gt 0 ] && [ "$2" -eq 0 ]
}
