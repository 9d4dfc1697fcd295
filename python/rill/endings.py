# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end: calls of daemon threads would not survive it."""

import atexit
import time
import weakref

from rill import _rill

# How long calls may take to end by themselves, in seconds.
GRACE = 5.0

# What is registered first is called last: when environments, collectors and buffers have ended their calls.
atexit.register(_rill.end_calls)


def ended_at_exit(end):
    """A set of objects, held weakly. At the interpreter's end `end(object)` ends the calls of each and gives its
    handle; then all are waited for, a while."""
    objects = weakref.WeakSet()

    @atexit.register
    def end_all():
        handles = [end(each) for each in list(objects)]
        deadline = time.monotonic() + GRACE
        while any(handle.calls_in_flight for handle in handles) and time.monotonic() < deadline:
            time.sleep(0.001)

    return objects
