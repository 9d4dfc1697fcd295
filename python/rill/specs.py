# SPDX-License-Identifier: Apache-2.0
"""What values may be, by TorchRL's names: Bounded, Categorical, ... of one array, Composite of a dict.

shape: that of a value; the dimensions of a batch come before it. dtype: a name, or one of NumPy or torch.
"""

import os
import re

import numpy as np

from rill import _rill
from rill.errors import Error, InvalidArgumentError
from rill.keys import key_text, level_text


class _Values:
    """What specs of arrays and of dicts share; _handle is the spec of C++."""

    def rand(self, shape=(), seed=None):
        """Random members, [*shape, *self.shape]: uniform, where the domain has no end normal.

        seed: the same one gives the same values; without it, others each time.
        """
        seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        return self._handle.rand(_sizes(shape), seed)

    def zero(self, shape=()):
        """Zeros, whether the domain has them or not."""
        return self._handle.zero(_sizes(shape))

    def one(self, shape=()):
        """Ones, whether the domain has them or not."""
        return self._handle.one(_sizes(shape))

    def assert_is_in(self, value):
        """Raises InvalidArgumentError, which names the first element that is outside."""
        self._handle.check(value)

    def is_in(self, value):
        """Whether dtype, shape and all elements fit; with any leading dimensions."""
        try:
            self._handle.check(value)
        except Error:
            return False
        return True

    def project(self, value):
        """A copy with each element moved into the domain: clipped, or the nearest option."""
        return self._handle.project(value)

    def cardinality(self):
        """How many members there are; None where there is no end."""
        return self._handle.cardinality()


class TensorSpec(_Values):
    """The spec of one array. Made by a class for each domain."""

    def __init__(self, **options):
        self._handle = _rill.LeafSpec(type(self).__name__, options)

    @property
    def shape(self):
        return self._handle.shape

    @property
    def dtype(self):
        return np.dtype(self._handle.dtype)

    @property
    def mask(self):
        """Where an option is allowed; None: everywhere."""
        return self._handle.mask

    def enumerate(self):
        """All members, [cardinality, *shape]."""
        return self._handle.enumerate()

    def expand(self, *shape):
        """The same domain with more leading dimensions."""
        return _of(self._handle.expand(_sizes(shape[0] if len(shape) == 1 else shape)))

    def __getitem__(self, index):
        """The spec of one element of the first dimension."""
        return _of(self._handle.index(index))

    def __eq__(self, other):
        return isinstance(other, TensorSpec) and self._handle.equals(other._handle)

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, self._handle)

    def __reduce__(self):
        return _restore, (type(self).__name__, self._options())

    def _options(self):
        return {"dtype": self._handle.dtype, "shape": list(self.shape)}


class Unbounded(TensorSpec):
    """Any value."""

    def __init__(self, shape=(1,), dtype="float32"):
        super().__init__(shape=_sizes(shape), dtype=dtype)


class Bounded(TensorSpec):
    """Between low and high, both included: numbers, or arrays with bounds of each element.

    Without a shape that of the bounds; without a dtype that of arrays, else float32.
    """

    def __init__(self, low, high, shape=None, dtype=None):
        if dtype is None:
            arrays = [bound.dtype for bound in (low, high) if hasattr(bound, "dtype")]
            dtype = arrays[0] if arrays else "float32"
        dtype = np.dtype(str(dtype).rpartition(".")[2] if "torch" in str(dtype) else dtype)
        low, high = np.asarray(low), np.asarray(high)
        if shape is None:
            shape = np.broadcast_shapes(low.shape, high.shape)
        super().__init__(low=_bound("low", low, shape, dtype), high=_bound("high", high, shape, dtype))

    @property
    def low(self):
        return self._handle.low

    @property
    def high(self):
        return self._handle.high

    def _options(self):
        return {"low": self.low, "high": self.high}


class Categorical(TensorSpec):
    """One of the options 0 .. n - 1. mask: those that are allowed, [*shape, n] or [n]."""

    def __init__(self, n, shape=(), dtype="int64", mask=None):
        super().__init__(n=n, shape=_sizes(shape), dtype=dtype, mask=mask)

    @property
    def n(self):
        return self._handle.n

    def to_one_hot_spec(self):
        return _of(self._handle.to_one_hot_spec())

    def to_one_hot(self, value):
        """The same options as rows with a single 1."""
        return self._handle.to_one_hot(value)

    def _options(self):
        return {**super()._options(), "n": self.n, "mask": self.mask}


class OneHot(TensorSpec):
    """One of n options, as a row with a single 1. shape ends with n."""

    def __init__(self, n, shape=None, dtype="bool", mask=None):
        super().__init__(n=n, shape=_lead(shape, n), dtype=dtype, mask=mask)

    @property
    def n(self):
        return self._handle.n

    def to_categorical_spec(self):
        return _of(self._handle.to_categorical_spec())

    def to_categorical(self, value):
        """The same options as numbers."""
        return self._handle.to_categorical(value)

    def _options(self):
        return {**super()._options(), "shape": list(self.shape[:-1]), "n": self.n, "mask": self.mask}


class MultiCategorical(TensorSpec):
    """A choice among each of nvec options. shape ends with the number of choices."""

    def __init__(self, nvec, shape=None, dtype="int64", mask=None):
        nvec = _sizes(nvec)
        super().__init__(nvec=nvec, shape=_lead(shape, len(nvec)), dtype=dtype, mask=mask)

    @property
    def nvec(self):
        return self._handle.nvec

    def to_one_hot_spec(self):
        return _of(self._handle.to_one_hot_spec())

    def to_one_hot(self, value):
        return self._handle.to_one_hot(value)

    def _options(self):
        return {**super()._options(), "shape": list(self.shape[:-1]), "nvec": self.nvec, "mask": self.mask}


class MultiOneHot(TensorSpec):
    """A choice among each of nvec options, as one row with a single 1 for each. shape ends with their sum."""

    def __init__(self, nvec, shape=None, dtype="bool", mask=None):
        nvec = _sizes(nvec)
        super().__init__(nvec=nvec, shape=_lead(shape, sum(nvec)), dtype=dtype, mask=mask)

    @property
    def nvec(self):
        return self._handle.nvec

    def to_categorical_spec(self):
        return _of(self._handle.to_categorical_spec())

    def to_categorical(self, value):
        return self._handle.to_categorical(value)

    def _options(self):
        return {**super()._options(), "shape": list(self.shape[:-1]), "nvec": self.nvec, "mask": self.mask}


class Binary(TensorSpec):
    """0 or 1. Without a shape [n]."""

    def __init__(self, n=None, shape=None, dtype="int8"):
        if n is None and shape is None:
            raise InvalidArgumentError("Binary: n: got none, want a number, or a shape")
        super().__init__(shape=[n] if shape is None else _sizes(shape), dtype=dtype)


class Composite(_Values):
    """The specs of a dict of arrays, by their keys; of a dict inside it, another Composite or dict."""

    def __init__(self, specs=None, **more):
        self._leaves = {}
        for key, spec in {**(specs or {}), **more}.items():
            self._add(key_text(key), spec)
        self._handle = _rill.SpecDict([(key, leaf._handle) for key, leaf in self._leaves.items()])

    def _add(self, key, spec):
        if isinstance(spec, TensorSpec):
            self._leaves[key] = spec
        elif hasattr(spec, "items"):
            for name, each in spec.items():
                self._add(key + "/" + key_text(name), each)
        else:
            raise InvalidArgumentError('Composite: "%s": got a %s, want a spec' % (key, type(spec).__name__))

    def __getitem__(self, key):
        key = key_text(key)
        if key in self._leaves:
            return self._leaves[key]
        below = {name[len(key) + 1:]: spec for name, spec in self._leaves.items() if name.startswith(key + "/")}
        if not below:
            raise KeyError(key)
        return Composite(below)

    def keys(self):
        return list(dict.fromkeys(re.split(r"(?<!\\)/", name)[0] for name in self._leaves))

    def items(self):
        return [(key, self[key]) for key in self.keys()]

    def leaves(self):
        """All specs of arrays, by their keys: "next/reward"."""
        return dict(self._leaves)

    def __contains__(self, key):
        return key_text(key) in self._leaves or key_text(key) in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def __eq__(self, other):
        return isinstance(other, Composite) and self._leaves == other._leaves

    def __repr__(self):
        return "Composite({%s})" % ", ".join('"%s": %r' % item for item in self._leaves.items())

    def __reduce__(self):
        return Composite, (self._leaves,)


def from_space(space):
    """The spec of a Gymnasium space. Dict and Tuple become a Composite.

    An option of a Discrete that begins elsewhere than at 0 is counted from 0.
    """
    kinds = {kind.__name__ for kind in type(space).__mro__}
    if "Box" in kinds:
        if np.isneginf(space.low).all() and np.isposinf(space.high).all():
            return Unbounded(space.shape, space.dtype)
        return Bounded(space.low, space.high, space.shape, space.dtype)
    if "Discrete" in kinds:
        return Categorical(int(space.n))
    if "MultiDiscrete" in kinds and np.ndim(space.nvec) == 1:
        return MultiCategorical(space.nvec)
    if "MultiBinary" in kinds:
        return Binary(shape=space.shape)
    if "Dict" in kinds:
        return Composite({level_text(key): from_space(each) for key, each in space.spaces.items()})
    if "Tuple" in kinds:
        return Composite({str(i): from_space(each) for i, each in enumerate(space.spaces)})
    raise InvalidArgumentError("from_space: got %r, want a Box, Discrete, MultiDiscrete of one dimension, "
                               "MultiBinary, Dict or Tuple" % (space,))


def _sizes(shape):
    return [int(size) for size in ((shape,) if isinstance(shape, (int, np.integer)) else shape)]


def _bound(name, bound, shape, dtype):
    """A bound of each element. Floats are rounded."""
    with np.errstate(invalid="ignore"):
        made = np.broadcast_to(bound, _sizes(shape)).astype(dtype)
    if dtype.kind != "f" and (made != bound).any():
        raise InvalidArgumentError("Bounded: %s: got %s, want numbers of %s" % (name, bound, dtype))
    return made


def _lead(shape, last):
    """The dimensions before that of the choices."""
    if shape is None:
        return []
    if not len(shape) or shape[-1] != last:
        raise InvalidArgumentError("shape: got %s, want one that ends with %d" % (tuple(shape), last))
    return _sizes(shape[:-1])


_DOMAINS = {kind.__name__: kind for kind in (Unbounded, Bounded, Categorical, OneHot, MultiCategorical, MultiOneHot,
                                            Binary)}


def _of(handle):
    spec = object.__new__(_DOMAINS[handle.domain])
    spec._handle = handle
    return spec


def _restore(domain, options):
    return _of(_rill.LeafSpec(domain, options))


def _composite(handle):
    return Composite({key: _of(leaf) for key, leaf in handle.leaves()})
