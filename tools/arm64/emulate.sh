#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For --run_under: a program for 64-bit ARM in QEMU's user-mode emulation, and
# programs that it starts; all else, such as a test's script, as it is.
# usage: emulate.sh PROGRAM [ARG ...]
machine=$(od -An -tu2 -j18 -N2 "$1")
[ "$(head -c 4 "$1" | tail -c 3)" = ELF ] && [ "$machine" -eq 183 ] || exec "$@"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
exec qemu-aarch64-static "$@"
