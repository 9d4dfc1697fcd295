# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping
from typing import Any

# A batch by its keys: arrays, and dicts of them.
_Batch = dict[str, Any]
# What is taken for one: a mapping, a TensorDict, a tensorclass.
_BatchLike = Mapping[Any, Any] | Any

def as_arrays(data: _BatchLike) -> _Batch: ...
def as_torch(batch: _Batch) -> _Batch: ...
def as_tensordict(batch: _Batch, rank: int = 1) -> Any: ...
