#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For --run_under: a program for 64-bit ARM in QEMU's user-mode emulation, all
# else, such as a test's script, as it is.
# usage: emulate.sh PROGRAM [ARG ...]
machine=$(od -An -tu2 -j18 -N2 "$1")
[ "$(head -c 4 "$1" | tail -c 3)" = ELF ] && [ "$machine" -eq 183 ] || exec "$@"
exec qemu-aarch64-static -L /usr/aarch64-linux-gnu "$@"
