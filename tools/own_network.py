#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program in a network namespace of its own, which has a loopback and
nothing else: ports are free, and nobody else can reach it. In one that is such
already, as a sandbox's, or where none is to be had, it runs the program as it
is; in the last case it says so.

usage: own_network.py PROGRAM [ARGUMENT...]
"""
import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def interfaces():
    return [line.split(":")[0].strip() for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines()[2:]]


def unshare(flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def leave_network():
    try:
        unshare(CLONE_NEWNET)
    except OSError:
        # Not as root: as the root of a user namespace.
        uid, gid = os.getuid(), os.getgid()
        unshare(CLONE_NEWUSER | CLONE_NEWNET)
        pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def can_leave():
    """Tried in a child, as there is no way back from half of it."""
    child = os.fork()
    if child == 0:
        try:
            leave_network()
        except OSError as error:
            print(f"own_network: not in a network namespace of its own: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def main():
    if interfaces() != ["lo"] and can_leave():
        leave_network()
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
