# SPDX-License-Identifier: Apache-2.0
"""Exponents of a prioritized buffer over the time of training, by TorchRL's names."""

from rill.errors import InvalidArgumentError


class _Scheduler:
    """obj: a buffer; param_name: "alpha" or "beta" of it. step() is for each step of the training."""

    def __init__(self, obj, param_name, value_of):
        self._obj = obj
        self._name = param_name
        self._value_of = value_of
        self._steps = 0
        self._first = getattr(obj, param_name)

    def step(self):
        self._steps += 1
        setattr(self._obj, self._name, self._value_of(self._first, self._steps))

    def state_dict(self):
        return {"steps": self._steps, "first": self._first}

    def load_state_dict(self, state):
        self._steps, self._first = state["steps"], state["first"]


class LinearScheduler(_Scheduler):
    """From the value at hand to final_value in num_steps steps, and no further."""

    def __init__(self, obj, param_name, final_value, num_steps):
        if num_steps < 1:
            raise InvalidArgumentError("LinearScheduler: num_steps: got %r, want >= 1" % (num_steps,))

        def value_of(first, steps):
            share = min(steps / num_steps, 1.0)
            return first * (1 - share) + final_value * share

        super().__init__(obj, param_name, value_of)


class StepScheduler(_Scheduler):
    """Times gamma ("multiplicative"), or plus gamma ("additive"), every n_steps steps, within the bounds."""

    def __init__(self, obj, param_name, gamma=0.9, n_steps=1, mode="multiplicative", min_value=None, max_value=None):
        if mode not in ("multiplicative", "additive"):
            raise InvalidArgumentError("StepScheduler: mode: got %r, want one of multiplicative, additive" % (mode,))
        if n_steps < 1:
            raise InvalidArgumentError("StepScheduler: n_steps: got %r, want >= 1" % (n_steps,))

        def value_of(first, steps):
            times = steps // n_steps
            value = first * gamma ** times if mode == "multiplicative" else first + gamma * times
            value = value if min_value is None else max(value, min_value)
            return value if max_value is None else min(value, max_value)

        super().__init__(obj, param_name, value_of)
