#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# programs_test.sh BUILD_PAGE MAKE_PROJECT LIB COMMAND...: commands that build
# programs have one set of flags and the disk cache; quickstart builds outside;
# inspect, convert and watch_env take what the tests have built. Bazel is a
# stand-in that writes down how it is called.
set -euo pipefail

root=$TEST_TMPDIR/rill
bin=$root/bazel-out/k8-opt/bin
export HOME=$root XDG_CACHE_HOME=$root/cache CALLS=$root/calls BAZEL_BIN=$bin
mkdir -p "$root/tools/readme" "$root/docs" "$root/path"
cp -L "$1" "$root/docs/"
cp -L "$2" "$root/tools/readme/"
shift 2
cp -L "$@" "$root/tools/"
printf '#!/bin/sh\n' | tee "$root/tools/setup" >"$root/program"
cat >"$root/path/bazel" <<'BAZEL'
#!/bin/sh
case $1 in
  --version) echo "bazel no_version" ;;
  info) echo "$BAZEL_BIN" ;;
  build) echo "$PWD: $*" >>"$CALLS" ;;
esac
BAZEL
chmod +x "$root/tools/setup" "$root/program" "$root/path/bazel"
PATH=$root/path:$PATH

# put_program FOLDER PACKAGE: as a build leaves it.
put_program() {
  mkdir -p "$1/$2"
  cp "$root/program" "$1/$2/$(basename "$2")"
}

# flags_of COMMAND: those of its build that choose what is compiled, and whether
# it has the cache.
flags_of() {
  rm -f "$CALLS"
  "$root/tools/$1" </dev/null >"$root/out" 2>&1 || { cat "$root/out" >&2; exit 1; }
  grep -oE -- '--(config|compilation_mode|copt)=[^ ]*|--disk_cache' "$CALLS" | tr '\n' ' '
}

want() {
  local got
  got=$(flags_of "$2")
  [ "$got" = "$1" ] || { echo "$2 builds with \"$got\", want \"$1\"" >&2; exit 1; }
}

put_program "$bin/external/rill" examples/dqn_cartpole
for name in inspect convert watch_env; do
  put_program "$bin" "tools/programs/$name"
done
mkdir -p "$bin/distributed/flight"
cp "$root/program" "$bin/distributed/flight/replay_server"
shared=$(flags_of quickstart)
grep -q "^$root/cache/rill/quickstart/.*/project: .* @rill//examples/dqn_cartpole:dqn_cartpole$" "$CALLS" || {
  echo "quickstart does not build outside: $(cat "$CALLS")" >&2
  exit 1
}
case "$shared" in
  *=opt*--disk_cache*) ;;
  *) echo "quickstart builds with \"$shared\", want optimised and with the cache" >&2; exit 1 ;;
esac
want "$shared" inspect
want "$shared" convert
want "$shared--config=flight " replay_server
want "$shared" watch_env

# The tests have built inspect only, and nobody else has.
rm -r "$bin/tools/programs/inspect" "$bin/tools/programs/convert" "$bin/tools/programs/watch_env"
put_program "$root/bazel-out/k8-fastbuild/bin" tools/programs/inspect
BAZEL_BIN=$root/bazel-out/k8-fastbuild/bin
want "--compilation_mode=fastbuild --disk_cache " inspect
put_program "$root/bazel-out/k8-fastbuild/bin" tools/programs/watch_env
want "--compilation_mode=fastbuild --disk_cache " watch_env
put_program "$bin" tools/programs/convert
BAZEL_BIN=$bin
want "$shared" convert
