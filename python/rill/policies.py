# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as policies of C++."""

from rill import _rill
from rill.data import as_tensordict, as_torch
from rill.errors import InvalidArgumentError
from rill.keys import key_text
from rill.specs import Composite


def converter(name, who):
    """What makes a batch of this kind from a dict of arrays, and the context of its use."""
    if name == "numpy":
        return None
    if name == "torch":
        return lambda batch, lead: as_torch(batch)
    if name == "tensordict":
        return as_tensordict
    raise InvalidArgumentError("%s: output: got %r, want one of numpy, torch, tensordict" % (who, name))


def make_act(policy, action_keys, convert):
    """(act, outputs): a function that gives the arrays of a policy as a list, as C++ takes them.

    policy: takes a dict of arrays [lanes, ...] (converted by `convert`) and gives the action, or what holds it
    under its key. policy.output_spec, a Composite, names further leaves that it gives.
    """
    outputs = getattr(policy, "output_spec", None)
    if not isinstance(outputs, Composite):
        outputs = Composite()
    keys = list(action_keys) + list(outputs.leaves())

    def act(root):
        if convert is None:
            return arrays_of(policy(root))
        import torch
        given = convert(root, 1)
        with torch.no_grad():
            made = policy(given)
        return arrays_of(given if made is None else made)

    def arrays_of(made):
        if hasattr(made, "keys"):
            return [_find(made, key) for key in keys]
        if len(keys) != 1:
            raise InvalidArgumentError("policy: got a %s, want a dict with %s" %
                                       (type(made).__name__, ", ".join(keys)))
        return [made]

    return act, _rill.SpecDict([(key, leaf._handle) for key, leaf in outputs.leaves().items()])


def _find(made, key):
    """The entry of this key, in one of the forms that keys have."""
    for name, value in made.items():
        text = key_text(name)
        if text == key:
            return value
        if key.startswith(text + "/") and hasattr(value, "keys"):
            return _find(value, key[len(text) + 1:])
    raise InvalidArgumentError('policy: got no "%s", want one among %s' % (key, ", ".join(map(str, made.keys()))))
