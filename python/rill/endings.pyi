# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from typing import Any

GRACE: float

def wait_for_calls(handles: Iterable[Any]) -> None: ...
