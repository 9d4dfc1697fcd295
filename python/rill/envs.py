# SPDX-License-Identifier: Apache-2.0
"""Environments: those of C++, Gymnasium's by name, and Python objects.

An environment has lanes: copies that step together. It belongs to the collector that gets it.
"""

import contextlib
import json
import os
import sys
import weakref

import numpy as np

from rill import _rill
from rill.core_names import Named
from rill.endings import ended_at_exit
from rill.errors import InvalidArgumentError
from rill.keys import level_name
from rill.policies import converter, make_act
from rill.specs import Bounded, Composite, TensorSpec, Unbounded, _composite, _of, from_space
from rill.transforms import as_transforms


class Env(Named):
    """An environment of `lanes` copies. Its data are TorchRL's: the state at the root of a step, and what
    follows below "next"."""

    def __init__(self, handle):
        self._handle = handle
        _open.add(self)

    @property
    def name(self):
        return self._handle.name

    @property
    def lanes(self):
        return self._handle.lanes

    @property
    def observation_spec(self):
        return _composite(self._handle.observation_spec)

    @property
    def action_spec(self):
        """The spec of "action"; a Composite where there are several."""
        return _alone(self._handle.action_spec, "action")

    @property
    def reward_spec(self):
        return _alone(self._handle.reward_spec, "reward")

    def set_seed(self, seed):
        """The next resets begin the episodes of this seed. A collector has a seed of its own."""
        self._handle.seed(seed)

    def rollout(self, max_steps, policy=None, *, auto_reset=True, break_when_any_done=True,
                break_when_all_done=False, set_truncated=False, seed=None, output="numpy"):
        """Steps as a batch [lanes, time]. Without a policy actions are random: of this seed, or others each time."""
        convert = converter(output, "rollout")
        keys = [key for key, _ in self._handle.action_spec.leaves()]
        act, outputs = (None, _rill.SpecDict([])) if policy is None else make_act(policy, keys, convert)
        batch = self._handle.rollout(act, outputs, {
            "max_steps": max_steps,
            "auto_reset": auto_reset,
            "break_when_any_done": break_when_any_done,
            "break_when_all_done": break_when_all_done,
            "set_truncated": set_truncated,
            "seed": _seed(seed),
        })
        return batch if convert is None else convert(batch, 2)

    def close(self):
        self._handle.close()

    def __reduce__(self):
        raise TypeError("%s: does not cross to another process; make it there" % type(self).__name__)


class _Classic(Env):
    """seed: the same one gives the same episodes; without it, others each time."""

    def __init__(self, lanes=1, *, max_episode_steps=None, seed=None):
        make = getattr(_rill, self._name)
        super().__init__(make({"lanes": lanes, "max_episode_steps": max_episode_steps, "seed": _seed(seed)}))


class CartPole(_Classic):
    """Gymnasium's CartPole-v1, bit for bit."""


class MountainCar(_Classic):
    """Gymnasium's MountainCar-v0, bit for bit."""


class MountainCarContinuous(_Classic):
    """Gymnasium's MountainCarContinuous-v0, bit for bit."""


class Acrobot(_Classic):
    """Gymnasium's Acrobot-v1, bit for bit."""


class Pendulum(_Classic):
    """Gymnasium's Pendulum-v1, bit for bit. A torque outside of its bounds is refused."""


class _Mujoco(Env):
    """A task of MuJoCo's in C++, in a wheel of `tools/wheel --mujoco`; else UnimplementedError.

    threads: that step the lanes. seed: as of the others. options: Gymnasium's, by its names.
    """

    def __init__(self, lanes=1, *, threads=1, max_episode_steps=None, seed=None, **options):
        super().__init__(_rill.mujoco_env(self._name, {
            "lanes": lanes, "threads": threads, "max_episode_steps": max_episode_steps, "seed": _seed(seed), **options}))


class Ant(_Mujoco):
    """Gymnasium's Ant-v5: steps equal to 1e-8, initial states of its distribution."""


class HalfCheetah(_Mujoco):
    """Gymnasium's HalfCheetah-v5, as Ant."""


class Hopper(_Mujoco):
    """Gymnasium's Hopper-v5, as Ant."""


class Humanoid(_Mujoco):
    """Gymnasium's Humanoid-v5, as Ant."""


class InvertedPendulum(_Mujoco):
    """Gymnasium's InvertedPendulum-v5, as Ant."""


class Walker2d(_Mujoco):
    """Gymnasium's Walker2d-v5, as Ant."""


_BUILT_IN = {"CartPole-v1": CartPole, "MountainCar-v0": MountainCar,
             "MountainCarContinuous-v0": MountainCarContinuous, "Acrobot-v1": Acrobot, "Pendulum-v1": Pendulum}
_BUILT_IN.update({name + "-v5": globals()[name] for name in _rill.mujoco_tasks()})


class GymEnv(Env):
    """Any environment of Gymnasium by its name, in Python processes of its own.

    lanes: copies, which are dealt to `children` processes. imports: modules that register environments.
    kwargs: arguments of gymnasium.make, which are JSON. Discrete actions are numbers, not one-hot.
    seed: the same one gives the same episodes; without it, others each time. step_timeout: seconds that a step, or a
    reset, of all lanes may take; a process that takes longer is ended, DeadlineExceededError.
    """

    def __init__(self, env_name, lanes=1, *, children=1, imports=(), seed=None, step_timeout=30.0, **kwargs):
        super().__init__(_rill.gymnasium_env({
            "id": env_name,
            "lanes": lanes,
            "children": children,
            "kwargs": json.dumps(kwargs),
            "imports": list(imports),
            "seed": _seed(seed),
            "step_timeout": step_timeout,
            "python": sys.executable or "python3",
            "python_path": [path for path in sys.path if path],
        }))


class PythonEnv(Env):
    """Python objects as one environment, a lane each: with reset and step as Gymnasium has them.

    observation_space and action_space of an object are Gymnasium's; or it has observation_spec and
    action_spec (rill.specs), the same of all objects. Leaves of a Dict are "observation/name". An exception comes back as
    that exception. Episodes are other ones each time, until set_seed.
    """

    def __init__(self, envs):
        self._envs = list(envs) if isinstance(envs, (list, tuple)) else [envs]
        if not self._envs:
            raise InvalidArgumentError("PythonEnv: got no object, want one or more")
        if len({id(env) for env in self._envs}) < len(self._envs):
            raise InvalidArgumentError("PythonEnv: got one object twice, want an object for each lane")
        first = self._envs[0]
        observation, action = _domain(first, "observation"), _domain(first, "action")
        for lane, env in enumerate(self._envs):
            _check_same(lane, "observation", _domain(env, "observation"), observation)
            _check_same(lane, "action", _domain(env, "action"), action)
        self._lanes = []
        self._to_close = [env for env in self._envs if hasattr(env, "close")]

        def make(lane, row):
            self._lanes.append(_Lane(self._envs[lane], observation, action, row))
            # The collector of cycles does not see what C++ holds, so this object holds the lane.
            weak = weakref.proxy(self._lanes[-1])
            return lambda seed: weak.reset(seed), lambda: weak.step()

        super().__init__(_rill.python_env(type(getattr(first, "unwrapped", first)).__name__, len(self._envs),
                                          _spec(observation, "observation")._handle,
                                          _spec(action, "action")._handle, make))
        self.set_seed(_seed(None))

    def close(self):
        super().close()
        _close_each(self._to_close)


class VectorEnv(Env):
    """Several environments as one, whose lanes stand one behind the other. It takes them.

    Their seeds follow from its own: other ones each time, until set_seed.
    """

    def __init__(self, envs):
        self._parts = list(envs)
        super().__init__(_rill.vector_env([env._handle for env in self._parts], _seed(None)))

    def close(self):
        super().close()
        _close_each(self._parts)


class TransformedEnv(Env):
    """An environment with transforms beside it, the first next to it. It takes the environment, and closes it on an error.

    env: as a collector takes one. transform: one of rill.transforms or a list of them; docs/transforms.md says which
    work beside an environment (E). Statistics, as VecNorm's, are this object's own, and part of a collector's state.
    """

    def __init__(self, env, transform):
        self._inner = as_env(env)
        try:
            parts = [each.make() for each in as_transforms(transform)]
            super().__init__(_rill.transformed_env(self._inner._handle, parts))
        except BaseException:
            self._inner.close()
            raise

    def close(self):
        super().close()
        self._inner.close()


def make(name, lanes=1, **options):
    """The environment of Gymnasium's of this name: of C++ where there is one, else a GymEnv.

    options: those of that class. With one of GymEnv's own (children, imports, step_timeout) it is one in any case; threads
    is one of MuJoCo's tasks in C++ alone.
    """
    kind = _BUILT_IN.get(name)
    if kind is None or not {"children", "imports", "step_timeout"}.isdisjoint(options):
        return GymEnv(name, lanes, **options)
    return kind(lanes, **options)


def as_env(env):
    """An Env of what a collector is given: one, an object, a name, a function that makes one, a list of them."""
    if isinstance(env, (list, tuple)):
        made = [_called(each) for each in env]
        if not any(isinstance(each, (Env, str)) for each in made):
            return PythonEnv(made)
        return VectorEnv([as_env(each) for each in made])
    env = _called(env)
    if isinstance(env, Env):
        return env
    if isinstance(env, str):
        return make(env)
    if hasattr(env, "reset") and hasattr(env, "step"):
        return PythonEnv(env)
    raise InvalidArgumentError("environment: got a %s, want an Env, an object with reset and step, a name, a function "
                               "that makes one, or a list of them" % type(env).__name__)


def _end(env):
    env._handle.stop()
    return env._handle


_open = ended_at_exit(_end)


def _called(env):
    """What a class or a function makes; all else as it is."""
    return env() if isinstance(env, type) or (callable(env) and not hasattr(env, "step")) else env


class _Lane:
    """One object, beside the arrays of its lane."""

    def __init__(self, env, observation, action, row):
        self._reset, self._step = env.reset, env.step
        self._put_first = _writer(observation, _at(observation, row, "observation"), "observation")
        self._put_next = _writer(observation, _at(observation, row["next"], "observation"), "observation")
        self._action = _reader(action, _at(action, row, "action"))

    def reset(self, seed):
        self._put_first(self._reset(seed=seed)[0])

    def step(self):
        result = self._step(self._action())
        if not isinstance(result, tuple) or len(result) != 5:
            raise InvalidArgumentError("step: got %s, want the five of Gymnasium: observation, reward, terminated, "
                                       "truncated, info" % ("a tuple of %d" % len(result) if isinstance(result, tuple)
                                                            else "a " + type(result).__name__))
        self._put_next(result[0])
        return result[1:4]


def _seed(seed):
    return int.from_bytes(os.urandom(8), "little") if seed is None else seed


def _close_each(parts):
    """Closes all of them once, in order, though one raises; what they raise comes then."""
    with contextlib.ExitStack() as stack:
        while parts:
            stack.callback(parts.pop().close)


def _alone(handle, key):
    leaves = handle.leaves()
    return _of(leaves[0][1]) if [name for name, _ in leaves] == [key] else _composite(handle)


def _domain(env, name):
    """A space of Gymnasium's, or a spec."""
    spec = getattr(env, name + "_spec", None)
    if isinstance(spec, (TensorSpec, Composite)):
        return spec
    space = getattr(env, name + "_space", None)
    if space is None:
        raise InvalidArgumentError("PythonEnv: a %s: got no %s_space, want one of Gymnasium's, or %s_spec of rill.specs"
                                   % (type(env).__name__, name, name))
    return space


def _spec(domain, key):
    if isinstance(domain, Composite):
        return domain
    return Composite({key: domain if isinstance(domain, TensorSpec) else from_space(domain)})


def _check_same(lane, name, got, want):
    """One environment has one spec: what an object may give, and where its options begin."""
    if _spec(got, name) != _spec(want, name) or _starts(got) != _starts(want):
        raise InvalidArgumentError("PythonEnv: object %d: %s: got %r, want %r as of object 0" % (lane, name, got, want))


def _starts(domain):
    """Those of all domains inside."""
    parts = _parts(domain)
    if parts is None:
        return np.asarray(getattr(domain, "start", 0)).tolist()
    return {str(name): _starts(part) for name, part in parts.items()}


def _parts(domain):
    """The domains inside, by name as values have it; None of an array's."""
    if isinstance(domain, Composite):
        return {level_name(name): part for name, part in domain.items()}
    spaces = getattr(domain, "spaces", None)
    return spaces if spaces is None or hasattr(spaces, "items") else dict(enumerate(spaces))


def _at(domain, row, key):
    """The place in a row that belongs to a domain: a Composite has keys of its own."""
    return row if isinstance(domain, Composite) else row[key]


def _start(domain):
    """What the first option is called; None where that is 0."""
    start = getattr(domain, "start", None)
    return start if start is not None and np.any(start) else None


def _writer(domain, row, key):
    """A function that puts an observation into its places, arrays in a dict as its parts are."""
    parts = _parts(domain)
    if parts is not None:
        puts = [(name, _writer(part, row[str(name)], "%s/%s" % (key, name))) for name, part in parts.items()]
        return lambda value: [put(value[name]) for name, put in puts]
    spec = domain if isinstance(domain, TensorSpec) else from_space(domain)
    start, shape, dtype = _start(domain), row.shape, row.dtype
    is_choice = not isinstance(spec, (Bounded, Unbounded))

    def put(value):
        value = np.asarray(value)
        if value.shape != shape:
            raise InvalidArgumentError("%s: got shape %s, want %s" % (key, value.shape, shape))
        made = _cast(value if start is None else value.astype(np.int64, casting="same_kind") - start, dtype, key)
        # What is counted must be in its place; other values may leave their bounds a little, as Gymnasium's do.
        if is_choice and not spec.is_in(made):
            raise InvalidArgumentError("%s: got %s, want one of %r" % (key, value, domain))
        row[...] = made

    return put


def _cast(value, dtype, key):
    """The same values. Floats are rounded, as to float32."""
    if value.dtype == dtype:
        return value
    are_integers = value.dtype.kind in "iu" and dtype.kind in "iu"
    with np.errstate(over="ignore", invalid="ignore"):
        made = value.astype(dtype, casting="unsafe" if are_integers else "same_kind")
    is_other = made != value if are_integers else np.isinf(made) & ~np.isinf(value) if dtype.kind == "f" else False
    if np.any(is_other):
        raise InvalidArgumentError("%s: got %s, want numbers of %s" % (key, value, dtype))
    return made


def _reader(domain, row):
    """A function that makes an action, which nothing else holds, from its places."""
    parts = _parts(domain)
    if parts is not None:
        takes = [(name, _reader(part, row[str(name)])) for name, part in parts.items()]
        if type(domain).__name__ == "Tuple":
            return lambda: tuple(take() for _, take in takes)
        return lambda: {name: take() for name, take in takes}
    start = _start(domain)
    if start is None:
        # A number where it has no shape.
        return row.copy if row.shape else lambda: row[()]
    return lambda: row + start
