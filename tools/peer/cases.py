# SPDX-License-Identifier: Apache-2.0
"""The dictionaries that are exchanged, each made by a function of its own."""
import torch
from tensordict import (LazyStackedTensorDict, NonTensorData, NonTensorStack, TensorDict,
                        lazy_stack, tensorclass)

FORMS = ("directory", "tdz", "consolidated")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


class Case:
    """A dictionary and what is known of it beforehand.

    not_written: forms that tensordict itself cannot write.
    refused: keys (tuples) that Rill does not load; for all forms, or by form.
    unread: forms in which Rill refuses the whole.
    """

    def __init__(self, make, not_written=(), refused=(), unread=()):
        self.name = make.__name__
        self.make = make
        self.not_written = set(not_written)
        self.refused = refused if isinstance(refused, dict) else {form: refused for form in FORMS}
        self.unread = set(unread)


CASES = []


def case(**options):
    def add(make):
        CASES.append(Case(make, **options))
        return make
    return add


def named(name, make, **options):
    make.__name__ = name
    case(**options)(make)


def integers(dtype):
    info = torch.iinfo(dtype)
    return TensorDict({"x": torch.tensor([info.min, 0, 1, info.max], dtype=dtype),
                       "one": torch.full((4, 1, 2), 7, dtype=dtype)}, [4])


def floats(dtype):
    info = torch.finfo(dtype)
    values = [0.0, -0.0, 1.5, -0.1, info.max, info.min, info.tiny, info.smallest_normal / 2,
              float("inf"), -float("inf"), float("nan"), 1 / 3]
    return TensorDict({"x": torch.tensor(values, dtype=dtype)}, [12])


def complexes(dtype):
    x = torch.complex(torch.tensor([0.5, -0.0, float("nan")]), torch.tensor([1.0, -2.0, float("inf")]))
    return TensorDict({"x": x.to(dtype)}, [3])


for _name in INTEGERS:
    named("dtype_" + _name, lambda d=getattr(torch, _name): integers(d))
for _name in FLOATS:
    named("dtype_" + _name, lambda d=getattr(torch, _name): floats(d))
for _name in ("complex64", "complex128"):
    named("dtype_" + _name, lambda d=getattr(torch, _name): complexes(d))


@case()
def dtype_bool():
    return TensorDict({"x": torch.tensor([True, False, True]),
                       "flag": torch.tensor([[True], [True], [False]])}, [3])


def steps(*batch):
    count = 1
    for size in batch:
        count *= size
    x = torch.arange(count * 2, dtype=torch.float32).reshape(*batch, 2)
    return TensorDict({"observation": x, "next": {"observation": x + 1,
                       "reward": x[..., :1].double() / 3, "done": x[..., :1] > 3}}, list(batch))


named("batch_none", steps)
named("batch_3", lambda: steps(3))
named("batch_2_3", lambda: steps(2, 3))
named("batch_0", lambda: steps(0))
named("batch_3_0", lambda: steps(3, 0))


@case()
def scalars():
    return TensorDict({"f": torch.tensor(0.25), "i": torch.tensor(-3), "b": torch.tensor(True)}, [])


@case()
def zero_elements():
    return TensorDict({"a": torch.zeros(3, 0), "b": torch.ones(3), "c": torch.zeros(3, 2, 0, dtype=torch.bool),
                       "d": {"e": torch.zeros(3, 0, dtype=torch.int64)}}, [3])


@case()
def nothing_in_it():
    return TensorDict({}, [4])


@case()
def nothing_nested():
    return TensorDict({"a": TensorDict({}, [4]), "b": {"c": TensorDict({}, [4, 2])}}, [4])


@case()
def nested_deep():
    td = TensorDict({"x": torch.arange(2)}, [2])
    for i in range(6):
        td = TensorDict({"level%d" % i: td, "x": torch.full((2,), i)}, [2])
    return td


@case()
def nested_longer_batch():
    return TensorDict({"a": torch.zeros(2), "agents": TensorDict({"x": torch.arange(6.).reshape(2, 3)}, [2, 3])}, [2])


NAMES = ("a/b c", "a.b", ".", "..", "%", "a%2Fb", "a\\b", "<x>", "q?*|", "c:", "tab\there", "line\nfeed",
         " ", "\"quoted\"", "'", "\u00e9t\u00e9", "\u65e5\u672c", "\U0001f600", "meta.json", "x.memmap", "-", "~",
         "type", "dtype", "0", "data", "\x7f", "A" * 60)


@case()
def names_of_leaves():
    return TensorDict({name: torch.full((2,), i) for i, name in enumerate(NAMES)}, [2])


@case()
def names_of_dictionaries():
    return TensorDict({name: {"x": torch.full((2,), i), name: torch.zeros(2)}
                       for i, name in enumerate(NAMES) if name != "meta.json"}, [2])


@case()
def names_like_files():
    return TensorDict({"a": torch.zeros(1), "a.memmap": torch.ones(1), "b": {"x": torch.ones(1)},
                       "b.shape": torch.ones(1)}, [1])


@case(refused=[("",)])
def name_empty():
    return TensorDict({"": torch.ones(2), "x": torch.zeros(2)}, [2])


@case()
def not_contiguous():
    x = torch.arange(24.).reshape(4, 6)
    return TensorDict({"transposed": x.t()[:4], "every_other": x[:, ::2], "expanded": torch.ones(1, 3).expand(4, 3),
                       "offset": torch.arange(10)[3:7], "column": x[:, 2]}, [4])


@case()
def odd_sizes():
    """Leaves that push those behind them off their alignment."""
    return TensorDict({"a": torch.arange(3, dtype=torch.uint8), "b": torch.tensor([1.5, 2.5, 3.5], dtype=torch.float64),
                       "c": torch.tensor([True, False, True]), "d": torch.arange(3, dtype=torch.int16),
                       "e": torch.arange(3) * (1 << 40), "f": torch.ones(3, 1, dtype=torch.complex64)}, [3])


@case(not_written=["consolidated"])  # which wants complex128 at multiples of 16 and puts it at 8
def odd_size_before_complex128():
    return TensorDict({"a": torch.arange(3, dtype=torch.uint8), "f": torch.ones(3, 1, dtype=torch.complex128)}, [3])


@case()
def one_dtype():
    return TensorDict({"a": torch.arange(3, dtype=torch.uint8), "b": torch.arange(3, dtype=torch.uint8) + 5}, [3])


@case()
def large():
    return TensorDict({"x": torch.arange(70000, dtype=torch.int32).reshape(7, 10000), "y": torch.rand(7, 33)}, [7])


@case()
def dimension_names():
    return TensorDict({"x": torch.zeros(2, 3)}, [2, 3], names=["b", "time"])


VALUES = {"text": "left", "unicode": "\u00e9 \u65e5 \"q\" \\ \n", "empty": "", "int": -7, "large": (1 << 53) + 1,
          "unsigned": (1 << 64) - 1, "float": 0.1, "round": 2.0, "tiny": 5e-324, "true": True, "false": False, "null": None,
          "list": [1, "a", None, [2.5]], "dict": {"b": {"c": [True]}, "a": 1}, "none_in_it": [], "nothing": {}}


@case()
def values():
    td = TensorDict({"x": torch.zeros(2)}, [2])
    for name, value in VALUES.items():
        td[name] = NonTensorData(value, batch_size=[2])
    return td


@case()
def values_nested():
    return TensorDict({"info": TensorDict({"task": NonTensorData("reach", batch_size=[2])}, [2])}, [2])


@case()
def value_stack():
    return TensorDict({"x": torch.zeros(3), "s": NonTensorStack("a", "b", "a")}, [3])


@case()
def value_stack_of_kinds():
    return TensorDict({"s": NonTensorStack(1, "b", None, [2.5, {"c": True}])}, [4])


@case()
def value_stack_2d():
    return TensorDict({"s": NonTensorStack(NonTensorStack("a", "b", "c"), NonTensorStack("d", "e", "f"))}, [2, 3])


def members(*sizes):
    return [TensorDict({"x": torch.arange(float(n)), "id": torch.tensor(n)}, []) for n in sizes]


@case()
def lazy_at_the_top():
    return LazyStackedTensorDict(*members(2, 2, 2), stack_dim=0)


@case()
def lazy_of_shapes():
    return LazyStackedTensorDict(*members(2, 3, 1), stack_dim=0)


@case()
def lazy_of_keys():
    return LazyStackedTensorDict(TensorDict({"x": torch.zeros(2)}, []),
                                 TensorDict({"x": torch.zeros(2), "y": torch.ones(1)}, []), stack_dim=0)


@case()
def lazy_second_dimension():
    return LazyStackedTensorDict(*[TensorDict({"x": torch.full((2, n), n)}, [2]) for n in (1, 2, 3)], stack_dim=1)


@case()
def lazy_inside():
    return TensorDict({"x": torch.zeros(2), "episodes": LazyStackedTensorDict(*members(2, 3), stack_dim=0)}, [2])


@case()
def lazy_deep_inside():
    stack = LazyStackedTensorDict(*[TensorDict({"a": {"b": torch.full((n,), n)}}, []) for n in (1, 2)], stack_dim=0)
    return TensorDict({"data": {"episodes": stack, "y": torch.ones(2)}}, [2])


def episodes(*lengths):
    return [TensorDict({"obs": torch.arange(2. * n).reshape(n, 2), "next": {"reward": torch.full((n, 1), 0.5 * n),
                        "done": torch.arange(n).reshape(n, 1) == n - 1}}, [n]) for n in lengths]


@case()
def lazy_uneven():
    return lazy_stack(episodes(3, 1, 4), 0)


@case()
def lazy_uneven_second_dimension():
    return lazy_stack(episodes(3, 1, 4), 1)


@case()
def lazy_uneven_without_steps():
    return lazy_stack(episodes(0, 2), 0)


@case()
def lazy_uneven_in_two_dimensions():
    return lazy_stack([TensorDict({"x": torch.ones(*batch, 2)}, batch) for batch in ((3, 2, 5), (1, 4, 5))], 1)


@case()
def lazy_uneven_inside():
    return TensorDict({"id": torch.arange(3), "data": {"episodes": lazy_stack(episodes(3, 1, 4), 0)}}, [3])


@case()
def lazy_uneven_in_members():
    return lazy_stack([TensorDict({"turns": lazy_stack(episodes(*range(1, n + 1)), 0)}, [n]) for n in (2, 3)], 0)


@case()
def lazy_uneven_with_values():
    return lazy_stack([td.set("task", NonTensorData("task %d" % i, batch_size=td.batch_size))
                       for i, td in enumerate(episodes(2, 1))], 0)


@case(unread=FORMS)
def lazy_uneven_of_lazy():
    return lazy_stack([lazy_stack(episodes(*lengths), 0) for lengths in ((3, 1), (2, 2), (1, 4, 2))], 0)


@case(unread=FORMS)  # members are dictionaries
def lazy_of_lazy():
    rows = [LazyStackedTensorDict(*members(*sizes), stack_dim=0) for sizes in ((1, 2), (3, 4))]
    return LazyStackedTensorDict(*rows, stack_dim=0)


@case(refused=[("rows",)])
def lazy_of_lazy_inside():
    rows = [LazyStackedTensorDict(*members(*sizes), stack_dim=0) for sizes in ((1, 2), (3, 4))]
    return TensorDict({"rows": LazyStackedTensorDict(*rows, stack_dim=0), "x": torch.zeros(2, 2)}, [2, 2])


@case()
def lazy_second_dimension_inside():
    stack = LazyStackedTensorDict(*[TensorDict({"x": torch.full((2, n), n)}, [2]) for n in (1, 2, 3)], stack_dim=1)
    return TensorDict({"stack": stack, "x": torch.zeros(2)}, [2])


@case()
def lazy_locked():
    return TensorDict({"stack": LazyStackedTensorDict(*members(1, 2), stack_dim=0)}, [2]).lock_()


@case()
def lazy_of_many():
    return LazyStackedTensorDict(*members(*range(1, 13)), stack_dim=0)


@case()
def lazy_with_values():
    return LazyStackedTensorDict(*[TensorDict({"x": torch.zeros(n), "s": NonTensorData("n%d" % n)}, [])
                                   for n in (1, 2)], stack_dim=0)


def strided(*rows):
    return torch.nested.nested_tensor(list(rows))


@case(not_written=["consolidated"])
def ragged():
    return TensorDict({"x": torch.zeros(2), "rows": strided(torch.arange(4.).reshape(2, 2), torch.ones(3, 2))}, [2])


@case(not_written=["consolidated"])
def ragged_integers_nested():
    return TensorDict({"a": {"rows": strided(torch.arange(3), torch.arange(1), torch.arange(5))}}, [3])


@case(not_written=["consolidated"])  # where rows may differ in one dimension
def ragged_in_two_dimensions():
    return TensorDict({"rows": strided(torch.ones(2, 2), torch.arange(3.).reshape(3, 1))}, [2])


def jagged(*rows):
    return torch.nested.nested_tensor(list(rows), layout=torch.jagged)


NO_JAGGED = {"not_written": ["directory", "tdz"]}


@case(**NO_JAGGED)
def ragged_jagged():
    return TensorDict({"rows": jagged(torch.arange(4.).reshape(2, 2), torch.ones(3, 2)), "x": torch.zeros(2)}, [2])


@case(**NO_JAGGED)
def ragged_jagged_nested():
    return TensorDict({"a": {"rows": jagged(torch.arange(3, dtype=torch.uint8), torch.arange(0, dtype=torch.uint8))},
                       "x": torch.zeros(2)}, [2])


@case(**NO_JAGGED)
def ragged_jagged_columns():
    return TensorDict({"rows": jagged(torch.arange(6).reshape(3, 2), torch.ones(1, 2).long()).transpose(1, 2)}, [2])


@case(**NO_JAGGED)
def ragged_jagged_lengths():
    rows = torch.nested.nested_tensor_from_jagged(torch.arange(12.).reshape(6, 2), offsets=torch.tensor([0, 3, 6]),
                                                  lengths=torch.tensor([1, 2]))
    return TensorDict({"rows": rows}, [2])


@tensorclass
class Step:
    observation: torch.Tensor
    name: str


@case()
def class_at_the_top():
    return Step(observation=torch.arange(6.).reshape(3, 2), name="walk", batch_size=[3])


@case(not_written=["consolidated"])
def class_inside():
    return TensorDict({"step": Step(observation=torch.ones(3, 2), name="run", batch_size=[3]), "x": torch.zeros(3)}, [3])


@case(not_written=["consolidated"], refused=[("agent",)])
def pickled_value():
    return TensorDict({"agent": NonTensorData(Case(pickled_value), batch_size=[2]), "x": torch.arange(2)}, [2])


@case(not_written=["consolidated"], refused=[("agents",)])
def pickled_stack():
    return TensorDict({"agents": NonTensorStack(Case(pickled_stack), Case(pickled_stack)), "x": torch.arange(2)}, [2])


@case(refused=[("half",)])
def dtype_complex32():
    return TensorDict({"half": torch.zeros(2, dtype=torch.complex32), "x": torch.arange(2)}, [2])


@case(not_written=["tdz", "consolidated"], refused=[("small",)])
def dtype_float8():
    return TensorDict({"small": torch.zeros(2).to(torch.float8_e4m3fn), "x": torch.arange(2)}, [2])
