# SPDX-License-Identifier: Apache-2.0
"""What tools/inspect --json --values must show for an object of tensordict's.

Written against tensordict alone (docs/formats/inspect.md says the form), so
that it can be compared with what Rill read.
"""
import math

import torch
from tensordict import LazyStackedTensorDict, NonTensorData, NonTensorStack, is_tensorclass


def key_text(*components):
    """A key as Rill writes it: components joined by "/", escaped."""
    return "/".join(c.replace("\\", "\\\\").replace("/", "\\/") for c in components)


def numbers(tensor):
    """The elements in row-major order, as JSON has them."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.double()  # exact, and numpy has no bfloat16
    return [number(x) for x in tensor.numpy().reshape(-1).tolist()]


def number(x):
    if isinstance(x, complex):
        return [number(x.real), number(x.imag)]
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return x


def leaf(tensor):
    return {"dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape), "values": numbers(tensor)}


def ragged(tensor):
    rows = tensor.unbind(0)
    return {"dtype": str(tensor.dtype).removeprefix("torch."),
            "shapes": [list(row.shape) for row in rows],
            "values": [x for row in rows for x in numbers(row)]}


def is_non_tensor_stack(value):
    """A stack of nothing but values, however deep."""
    if isinstance(value, NonTensorStack):
        return True
    return isinstance(value, LazyStackedTensorDict) and all(
        isinstance(m, NonTensorData) or is_non_tensor_stack(m) for m in value.tensordicts)


def flat(value, depth):
    return [x for v in value for x in flat(v, depth - 1)] if depth else [value]


def inner(value):
    """The dictionary of a tensorclass."""
    return value._tensordict if is_tensorclass(value) else value


class Description:
    """The members of one dictionary, gathered level by level."""

    def __init__(self):
        self.members = {"batch_shape": [], "leaves": {}}

    def add(self, member, key, value):
        self.members.setdefault(member, {})[key] = value

    def level(self, td, prefix):
        for name, value in td.items():
            self.entry(td, key_text(*prefix, name), prefix + (name,), value)

    def entry(self, td, key, path, value):
        if isinstance(value, torch.Tensor):
            if value.is_nested:
                self.add("ragged", key, ragged(value))
            else:
                self.members["leaves"][key] = leaf(value)
        elif isinstance(value, NonTensorData):
            self.add("non_tensors", key, value.data)
        elif is_non_tensor_stack(value):
            shape = list(value.batch_size)
            self.add("stacks", key, {"shape": shape, "values": flat(value.tolist(), len(shape))})
        elif isinstance(value, LazyStackedTensorDict):
            self.add("lazy_stacks", key, lazy_stack(value))
        else:
            value = inner(value)
            if not list(value.keys()) or value.batch_size != td.batch_size:
                self.add("dicts", key, list(value.batch_size))
            self.level(value, path)


def lazy_stack(stack):
    return {"batch_shape": list(stack.batch_size), "stack_dim": stack.stack_dim,
            "members": [describe(m) for m in stack.tensordicts]}


def describe(td):
    td = inner(td)
    if isinstance(td, LazyStackedTensorDict):
        return lazy_stack(td)
    description = Description()
    description.members["batch_shape"] = list(td.batch_size)
    if any(name is not None for name in td.names):
        description.members["dim_names"] = list(td.names)
    description.level(td, ())
    return description.members


def difference(want, got, where=""):
    """The first difference, or None. Numbers are compared as what they are:
    no integer for a bool, and a zero keeps its sign."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in want.keys() | got.keys():
            if key not in got or key not in want:
                return "%s: %s is %s" % (where, key, "missing" if key in want else "too much")
            found = difference(want[key], got[key], "%s %s" % (where, key))
            if found:
                return found
        return None
    if isinstance(want, (list, tuple)) and isinstance(got, list) and len(want) == len(got):
        found = (difference(w, g, "%s[%d]" % (where, i)) for i, (w, g) in enumerate(zip(want, got)))
        return next(filter(None, found), None)
    if isinstance(want, float) and type(got) in (int, float):
        equal = (want == got and math.copysign(1, want) == math.copysign(1, got))
    else:
        equal = type(want) is type(got) and want == got
    return None if equal else "%s: want %.80r, got %.80r" % (where, want, got)
