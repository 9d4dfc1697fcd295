# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end: calls of daemon threads would not survive it."""

import atexit
import time

from rill import _rill

# How long calls may take to end by themselves, in seconds.
GRACE = 5.0

# What is registered first is called last: when environments, collectors and buffers have ended their calls.
atexit.register(_rill.end_calls)


def wait_for_calls(handles):
    """Until none of them is in a call, or the time is over."""
    deadline = time.monotonic() + GRACE
    while any(handle.calls_in_flight for handle in handles) and time.monotonic() < deadline:
        time.sleep(0.001)
