# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

GRACE: float

def ended_at_exit(end: Callable[[Any], Any]) -> WeakSet[Any]: ...
