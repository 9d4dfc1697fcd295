#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/release in a repository of a few files: equal bytes, refusals, and the
# outside project that takes the archive.
# usage: release_test.sh RELEASE LIB
set -euo pipefail

tools=$(dirname "$(realpath "$1")")
work=$TEST_TMPDIR/release
mkdir -p "$work/tree/tools"
cp "$tools/release" "$tools/lib.sh" "$work/tree/tools/"
cd "$work/tree"
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

die() {
  echo "release_test: $*" >&2
  exit 1
}
commit() {
  git add -A
  git commit -q -m "$1"
}
# refused WORD: the release fails, and says WORD.
refused() {
  local said
  ! said=$(tools/release "$work/refused" 2>&1) || die "was not refused: $1"
  [[ $said == *"$1"* ]] || die "wanted \"$1\", got: $said"
}

git init -q .
printf 'module(\n    name = "rill",\n    version = "1.2.3",\n)\n' >MODULE.bazel
printf '# Changelog\n\n## Unreleased\n' >CHANGELOG.md
commit "begin"
refused 'no section "## 1.2.3"'
printf '# Changelog\n\n## 1.2.3\n\n- All.\n' >CHANGELOG.md
refused "not committed"
commit "1.2.3"

tools/release "$work/one" >"$work/said"
grep -q "$(sha256sum "$work/one/rill-1.2.3.tar.gz" | cut -d' ' -f1)" "$work/said" || die "another checksum: $(cat "$work/said")"
tar -tzf "$work/one/rill-1.2.3.tar.gz" | grep -x "rill-1.2.3/MODULE.bazel" >/dev/null || die "MODULE.bazel is not in the archive"
# Elsewhere, later, with other rights and another time zone.
git clone -q . "$work/clone"
(
  cd "$work/clone"
  umask 0077
  touch -d "2001-01-01" MODULE.bazel
  TZ=Asia/Tokyo tools/release "$work/two" >/dev/null
)
cmp "$work/one/rill-1.2.3.tar.gz" "$work/two/rill-1.2.3.tar.gz" || die "a clone makes other bytes"

# The outside project, with a Bazel that passes where RILL_FAKE_STATUS is 0.
mkdir -p testing/consumer bin
ln -s ../../tools/lib.sh testing/consumer/linked
printf 'local_repository(\n    name = "rill",\n    path = "../..",\n)\n\nload("@rill//x")\n' >testing/consumer/WORKSPACE
printf 'local_path_override(\n    module_name = "rill",\n)\n\nlast()\n' >testing/consumer/MODULE.bazel
cat >bin/bazel <<'EOF'
#!/bin/sh
[ "$1" != --version ] || { echo "bazel no_version"; exit; }
cat WORKSPACE MODULE.bazel linked
echo "$@"
exit "$RILL_FAKE_STATUS"
EOF
printf '#!/bin/sh\n' >tools/setup
chmod +x bin/bazel tools/setup
commit "outside project"
export PATH=$work/tree/bin:$PATH XDG_CACHE_HOME=$work/cache
RILL_FAKE_STATUS=0 tools/release --try "$work/one" //:some >"$work/said" ||
  die "does not pass: $(cat "$work/said")"
# said WORD: the fake Bazel has seen it.
said() {
  grep -qF -- "$1" "$work/said" || die "wanted \"$1\", got: $(cat "$work/said")"
}
sum=$(sha256sum "$work/one/rill-1.2.3.tar.gz" | cut -d' ' -f1)
said "    sha256 = \"$sum\","
said "    integrity = \"sha256-$(echo "$sum" | python3 -c \
  'import base64; print(base64.b64encode(bytes.fromhex(input())).decode())')\","
said "/rill-1.2.3.tar.gz\"],"
said 'load("@rill//x")'
said "last()"
said "# What the commands in tools/ share."
said " -- //:some"
! grep -qE "local_repository|local_path" "$work/said" || die "takes Rill from beside: $(cat "$work/said")"
! RILL_FAKE_STATUS=1 tools/release --try "$work/one" >"$work/said" 2>&1 || die "a failure passes"
said "does not pass"
sed -i "s/^local_repository/another/" testing/consumer/WORKSPACE
commit "another rule"
! RILL_FAKE_STATUS=0 tools/release --try "$work/one" >"$work/said" 2>&1 || die "no rule to replace, and it passes"
said "WORKSPACE has no local_repository"

echo 'bazel_dep(name = "rill", version = "1.2.2")' >README.md
commit "old version"
refused "another version than 1.2.3"
echo "release_test: passed"
