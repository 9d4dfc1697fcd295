#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/release in a repository of three files: equal bytes, and refusals.
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
tar -tzf "$work/one/rill-1.2.3.tar.gz" | grep -qx "rill-1.2.3/MODULE.bazel" || die "MODULE.bazel is not in the archive"
# Elsewhere, later, with other rights and another time zone.
git clone -q . "$work/clone"
(
  cd "$work/clone"
  umask 0077
  touch -d "2001-01-01" MODULE.bazel
  TZ=Asia/Tokyo tools/release "$work/two" >/dev/null
)
cmp "$work/one/rill-1.2.3.tar.gz" "$work/two/rill-1.2.3.tar.gz" || die "a clone makes other bytes"

echo 'bazel_dep(name = "rill", version = "1.2.2")' >README.md
commit "old version"
refused "another version than 1.2.3"
echo "release_test: passed"
