# SPDX-License-Identifier: Apache-2.0
"""What happens to batches of a replay buffer, by TorchRL's names.

A sample goes through the transforms of a buffer in order, a batch that is
written through their inverses in reverse order. Dimensions are those of a row,
from the back. A transform says what it is; the buffer that takes it makes it.
A function of batches is one too: see FunctionTransform.
"""

import weakref

from rill import _rill
from rill.core_names import Named
from rill.errors import InvalidArgumentError
from rill.keys import key_text, key_texts

_KEYS = frozenset(
    ("in_keys", "out_keys", "in_keys_inv", "out_keys_inv", "selected_keys", "excluded_keys")
)


class Transform(Named):
    """One of the core's, by its name there and its options."""

    def __init__(self, **options):
        self._options = {
            name: self._value(name, value)
            for name, value in options.items()
            if value is not None
        }

    @staticmethod
    def _value(name, value):
        if name in _KEYS:
            return key_texts(value)
        return key_text(value) if name.endswith("_key") or name == "key" else value

    def make(self):
        """A new rill._rill.Transform of these options."""
        return _rill.transform(self._name, self._options)

    def __repr__(self):
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{type(self).__name__}({options})"


class FunctionTransform(Transform):
    """A function of batches: function(batch) gives the batch, or changes its entries.

    batch: a dict of arrays, which are not to be written to: put others in
    their places. forward works on samples, inverse on what is written. An
    exception of theirs is that of the call that sampled or wrote.
    """

    def __init__(self, forward=None, inverse=None, *, name=None):
        super().__init__()
        self._functions = (forward, inverse)
        self._name = name or getattr(forward or inverse, "__name__", "FunctionTransform")

    def make(self):
        # The collector of cycles does not see what C++ holds. So that is no function: the buffer has this object.
        weak = weakref.proxy(self)
        forward, inverse = self._functions
        return _rill.function_transform(
            self._name,
            None if forward is None else lambda batch: weak._functions[0](batch),
            None if inverse is None else lambda batch: weak._functions[1](batch),
        )


def as_transforms(given):
    """The transforms of one, a list of them, or None."""
    return [as_transform(each) for each in (given if isinstance(given, (list, tuple)) else [given]) if each is not None]


def as_transform(transform):
    """A transform: a function is one of samples."""
    if hasattr(transform, "make"):
        return transform
    if not callable(transform):
        raise InvalidArgumentError(
            f"transform: got a {type(transform).__name__}, want one of rill.transforms or a function"
        )
    return FunctionTransform(transform)


# --- structure ---------------------------------------------------------------


class DTypeCastTransform(Transform):
    _name = "DTypeCast"

    def __init__(self, dtype_in, dtype_out, in_keys=None, out_keys=None, in_keys_inv=None):
        super().__init__(
            dtype_in=dtype_in,
            dtype_out=dtype_out,
            in_keys=in_keys,
            out_keys=out_keys,
            in_keys_inv=in_keys_inv,
        )


class DoubleToFloat(Transform):
    def __init__(self, in_keys=None, out_keys=None, in_keys_inv=None):
        super().__init__(in_keys=in_keys, out_keys=out_keys, in_keys_inv=in_keys_inv)


class SelectTransform(Transform):
    _name = "Select"

    def __init__(self, *selected_keys, keep_rewards=True, keep_dones=True):
        super().__init__(
            selected_keys=selected_keys, keep_rewards=keep_rewards, keep_dones=keep_dones
        )


class ExcludeTransform(Transform):
    _name = "Exclude"

    def __init__(self, *excluded_keys, inverse=False):
        super().__init__(excluded_keys=excluded_keys, inverse=inverse)


class RenameTransform(Transform):
    _name = "Rename"

    def __init__(
        self, in_keys, out_keys, in_keys_inv=None, out_keys_inv=None, create_copy=False
    ):
        super().__init__(
            in_keys=in_keys,
            out_keys=out_keys,
            in_keys_inv=in_keys_inv,
            out_keys_inv=out_keys_inv,
            create_copy=create_copy,
        )


class CatTensors(Transform):
    def __init__(
        self, in_keys, out_key="observation_vector", dim=-1, *, del_keys=True, sort=True
    ):
        super().__init__(in_keys=in_keys, out_key=out_key, dim=dim, del_keys=del_keys, sort=sort)


class Stack(Transform):
    _name = "StackTensors"

    def __init__(self, in_keys, out_key, dim=-1, *, del_keys=True):
        super().__init__(in_keys=in_keys, out_key=out_key, dim=dim, del_keys=del_keys)


class FlattenObservation(Transform):
    def __init__(self, first_dim, last_dim, in_keys=None, out_keys=None):
        super().__init__(
            first_dim=first_dim, last_dim=last_dim, in_keys=in_keys, out_keys=out_keys
        )


class UnsqueezeTransform(Transform):
    _name = "Unsqueeze"

    def __init__(self, dim, in_keys, out_keys=None, in_keys_inv=None):
        super().__init__(dim=dim, in_keys=in_keys, out_keys=out_keys, in_keys_inv=in_keys_inv)


class SqueezeTransform(UnsqueezeTransform):
    _name = "Squeeze"


class PermuteTransform(Transform):
    _name = "Permute"

    def __init__(self, dims, in_keys, out_keys=None, in_keys_inv=None):
        super().__init__(
            dims=list(dims), in_keys=in_keys, out_keys=out_keys, in_keys_inv=in_keys_inv
        )


class ExpandAs(Transform):
    """Repeats a leaf to the shape of another one."""

    def __init__(self, in_key, ref_key, out_key=None):
        super().__init__(in_key=in_key, ref_key=ref_key, out_key=out_key)


class SequenceLines(Transform):
    """A flat sample of sequences becomes [sequences, length]."""

    def __init__(self, length):
        super().__init__(length=length)


# --- images ------------------------------------------------------------------


class ToTensorImage(Transform):
    def __init__(
        self,
        from_int=None,
        unsqueeze=False,
        dtype=None,
        *,
        in_keys=None,
        out_keys=None,
        shape_tolerant=False,
    ):
        super().__init__(
            from_int=from_int,
            unsqueeze=unsqueeze,
            dtype=dtype,
            in_keys=in_keys,
            out_keys=out_keys,
            shape_tolerant=shape_tolerant,
        )


class Crop(Transform):
    def __init__(self, w, h=None, top=0, left=0, in_keys=None, out_keys=None):
        super().__init__(w=w, h=h, top=top, left=left, in_keys=in_keys, out_keys=out_keys)


class CenterCrop(Transform):
    def __init__(self, w, h=None, in_keys=None, out_keys=None):
        super().__init__(w=w, h=h, in_keys=in_keys, out_keys=out_keys)


class Resize(Transform):
    """w is the width, where TorchRL takes it for the rows."""

    def __init__(
        self, w, h=None, interpolation="bilinear", in_keys=None, out_keys=None, *, antialias=True
    ):
        super().__init__(
            w=w,
            h=h,
            interpolation=interpolation,
            in_keys=in_keys,
            out_keys=out_keys,
            antialias=antialias,
        )


class GrayScale(Transform):
    def __init__(self, in_keys=None, out_keys=None):
        super().__init__(in_keys=in_keys, out_keys=out_keys)


class CatFrames(Transform):
    """Of samples of slices; where single frames are stored, prefer rill.FrameStack."""

    def __init__(
        self,
        N,
        dim,
        in_keys=None,
        out_keys=None,
        padding="same",
        padding_value=0.0,
        done_key=None,
    ):
        super().__init__(
            num_frames=N,
            dim=dim,
            in_keys=in_keys,
            out_keys=out_keys,
            padding=padding,
            padding_value=float(padding_value),
            done_key=done_key,
        )


# --- values ------------------------------------------------------------------


def _numbers(values):
    return [float(value) for value in (values if hasattr(values, "__len__") else [values])]


class ObservationNorm(Transform):
    def __init__(
        self,
        loc,
        scale,
        in_keys=None,
        out_keys=None,
        in_keys_inv=None,
        standard_normal=False,
    ):
        super().__init__(
            loc=_numbers(loc),
            scale=_numbers(scale),
            in_keys=in_keys,
            out_keys=out_keys,
            in_keys_inv=in_keys_inv,
            standard_normal=standard_normal,
        )


class ClipTransform(Transform):
    _name = "Clip"

    def __init__(self, in_keys, out_keys=None, in_keys_inv=None, *, low=None, high=None):
        super().__init__(
            in_keys=in_keys, out_keys=out_keys, in_keys_inv=in_keys_inv, low=low, high=high
        )


class RewardClipping(Transform):
    def __init__(self, clamp_min=None, clamp_max=None, in_keys=None, out_keys=None):
        super().__init__(
            clamp_min=clamp_min, clamp_max=clamp_max, in_keys=in_keys, out_keys=out_keys
        )


class BinarizeReward(Transform):
    def __init__(self, in_keys=None, out_keys=None):
        super().__init__(in_keys=in_keys, out_keys=out_keys)


class SignTransform(Transform):
    _name = "Sign"

    def __init__(self, in_keys, out_keys=None, in_keys_inv=None):
        super().__init__(in_keys=in_keys, out_keys=out_keys, in_keys_inv=in_keys_inv)


class RewardScaling(Transform):
    def __init__(self, loc, scale, key=None, standard_normal=False):
        super().__init__(
            loc=float(loc), scale=float(scale), key=key, standard_normal=standard_normal
        )


class FiniteTensorDictCheck(Transform):
    def __init__(self):
        super().__init__()


# --- beside an environment alone: rill.envs.TransformedEnv -------------------


class _StepTransform(Transform):
    def make(self):
        return _rill.step_transform(self._name, self._options)


class StepCounter(_StepTransform):
    """Counts the steps of episodes. max_steps: an episode that has so many is truncated."""

    def __init__(self, max_steps=None, truncated_key=None, step_count_key=None, update_done=True):
        super().__init__(
            max_steps=max_steps,
            truncated_key=truncated_key,
            step_count_key=step_count_key,
            update_done=update_done,
        )


class RewardSum(_StepTransform):
    """The sum of an episode's rewards so far. Each of the lists has one key, the first below next."""

    def __init__(self, in_keys=("reward",), out_keys=("episode_reward",)):
        (reward_key,), (sum_key,) = key_texts(in_keys), key_texts(out_keys)
        super().__init__(reward_key=reward_key, sum_key=sum_key)


class InitTracker(_StepTransform):
    """Says which steps begin an episode."""

    def __init__(self, init_key="is_init"):
        super().__init__(init_key=init_key)


class TrajCounter(_StepTransform):
    """Numbers the episodes."""

    def __init__(self, out_key="traj_count"):
        super().__init__(out_key=out_key)


class VecNorm(_StepTransform):
    """Leaves less their running mean, by their running deviation.

    shapes: of each of in_keys, without the lanes. decay: of the rows before; with 1 all weigh the same.
    """

    def __init__(self, in_keys, shapes, out_keys=None, decay=0.9999, eps=1e-4):
        super().__init__(
            in_keys=in_keys,
            shapes=[list(shape) for shape in shapes],
            out_keys=out_keys,
            decay=float(decay),
            eps=float(eps),
        )


# --- episodes and estimators -------------------------------------------------


class BurnInTransform(Transform):
    """Marks the steps that warm a network up; the network runs outside."""

    _name = "BurnIn"

    def __init__(self, burn_in, *, mask_key=None):
        super().__init__(burn_in=burn_in, mask_key=mask_key)


class RandomCropTensorDict(Transform):
    def __init__(self, sub_seq_len, sample_dim=-1, mask_key=None, *, seed=0):
        super().__init__(
            sub_seq_len=sub_seq_len, sample_dim=sample_dim, mask_key=mask_key, seed=seed
        )


class NextObservationDelta(Transform):
    """Next observations are stored as small differences."""

    def __init__(self, in_keys=None, delta_dtype=None, drop_delta=True):
        super().__init__(in_keys=in_keys, delta_dtype=delta_dtype, drop_delta=drop_delta)


class NextStateReconstructor(Transform):
    """next of slices and sequences, which was not stored, from the rows behind; fill_value where none is."""

    def __init__(self, keys=("observation",), *, traj_key=None, done_key=None, step_count_key=None, mask_key=None,
                 fill_value=None, strict=True):
        super().__init__(keys=key_texts(keys), traj_key=traj_key, done_key=done_key, step_count_key=step_count_key,
                         mask_key=mask_key, fill_value=fill_value, strict=strict)


class ActionChunkTransform(Transform):
    """The next actions of each row of slices and sequences; "action_is_pad" behind the end of a trajectory."""

    _name = "ActionChunk"

    def __init__(self, chunk_size, action_key="action", chunk_key=None, pad_key=None, done_key=None):
        super().__init__(chunk_size=chunk_size, action_key=action_key, chunk_key=chunk_key, pad_key=pad_key,
                         done_key=done_key)


class Reward2GoTransform(Transform):
    _name = "Reward2Go"

    def __init__(self, gamma=1.0, in_keys=None, out_keys=None, done_key=None):
        super().__init__(gamma=gamma, in_keys=in_keys, out_keys=out_keys, done_key=done_key)


class DensifyReward(Transform):
    def __init__(self, reward_key=None, done_key=None, reward_key_out=None, discount=1.0):
        super().__init__(
            reward_key=reward_key,
            done_key=done_key,
            reward_key_out=reward_key_out,
            discount=discount,
        )


class GAE(Transform):
    """Of values that a network has written: "state_value", "next/state_value".

    keys: reward_key, value_key, next_value_key, done_key, terminated_key,
    advantage_key and value_target_key.
    """

    def __init__(self, *, gamma=0.99, lmbda=0.95, average_gae=False, **keys):
        super().__init__(gamma=gamma, lmbda=lmbda, average_gae=average_gae, **keys)


class TDLambdaEstimator(Transform):
    """As GAE; lmbda 0 is TD(0), 1 is TD(1)."""

    def __init__(self, *, gamma=0.99, lmbda=0.95, **keys):
        super().__init__(gamma=gamma, lmbda=lmbda, **keys)


class TD0Estimator(TDLambdaEstimator):
    """One reward and the value behind it."""

    def __init__(self, *, gamma=0.99, **keys):
        super().__init__(gamma=gamma, lmbda=0.0, **keys)

    _name = "TDLambdaEstimator"


class TD1Estimator(TDLambdaEstimator):
    """All rewards to the end, and the value there."""

    def __init__(self, *, gamma=0.99, **keys):
        super().__init__(gamma=gamma, lmbda=1.0, **keys)

    _name = "TDLambdaEstimator"


class VTrace(Transform):
    """As GAE, and of "log_prob" and "action_log_prob"."""

    def __init__(
        self, *, gamma=0.99, rho_thresh=1.0, c_thresh=1.0, average_adv=False, **keys
    ):
        super().__init__(
            gamma=gamma, rho_thresh=rho_thresh, c_thresh=c_thresh, average_adv=average_adv, **keys
        )
