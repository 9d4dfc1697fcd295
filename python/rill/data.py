# SPDX-License-Identifier: Apache-2.0
"""Batches of other libraries as dicts of arrays, and back. Nothing is imported before it is asked for."""

from rill.errors import InvalidArgumentError


def as_arrays(data):
    """A dict of what has keys: a TensorDict, a tensorclass, any mapping."""
    if hasattr(data, "to_tensordict") and not hasattr(data, "items"):
        data = data.to_tensordict()
    if not hasattr(data, "items"):
        raise InvalidArgumentError("batch: got a %s, want a dict of arrays or a TensorDict" % type(data).__name__)
    return {key: as_arrays(value) if hasattr(value, "items") else value
            for key, value in data.items()}


def as_torch(batch):
    """The same batch with torch tensors that share its memory."""
    from torch import from_numpy
    return {key: as_torch(value) if type(value) is dict else from_numpy(value)
            for key, value in batch.items()}


def as_tensordict(batch, rank=1):
    """The same batch as a TensorDict that shares its memory. rank: how many dimensions are the batch's."""
    from tensordict import TensorDict
    leaf = batch
    while type(leaf) is dict:
        leaf = next(iter(leaf.values()))
    return TensorDict(as_torch(batch), batch_size=leaf.shape[:rank])
