# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any, Literal

from rill._rill import SpecDict
from rill.data import _Batch

# Takes the state of all lanes and gives the action, or what holds it under "action".
_Policy = Callable[[Any], Any]
_Output = Literal["numpy", "torch", "tensordict"]
_Convert = Callable[[_Batch, int], Any] | None

def converter(name: _Output, who: str) -> _Convert: ...
def make_act(
    policy: _Policy, action_keys: Sequence[str], convert: _Convert
) -> tuple[Callable[[_Batch], list[Any]], SpecDict]: ...
