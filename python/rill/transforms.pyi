# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike, DTypeLike
from rill import _rill
from rill.core_names import Named
from rill.data import _Batch
from rill.keys import _Key, _Keys

# Changes a batch in place, or gives another one.
_Function = Callable[[_Batch], _Batch | None]
_TransformLike = Transform | _Function

class Transform(Named):
    def __init__(self, **options: Any) -> None: ...
    def make(self) -> _rill.Transform: ...

class FunctionTransform(Transform):
    def __init__(
        self, forward: _Function | None = None, inverse: _Function | None = None, *, name: str | None = None
    ) -> None: ...
    def make(self) -> _rill.Transform: ...

def as_transforms(given: _TransformLike | Sequence[_TransformLike] | None) -> list[Transform]: ...
def as_transform(transform: _TransformLike) -> Transform: ...

class DTypeCastTransform(Transform):
    def __init__(
        self,
        dtype_in: DTypeLike,
        dtype_out: DTypeLike,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
        in_keys_inv: _Keys | None = None,
    ) -> None: ...

class DoubleToFloat(Transform):
    def __init__(
        self, in_keys: _Keys | None = None, out_keys: _Keys | None = None, in_keys_inv: _Keys | None = None
    ) -> None: ...

class SelectTransform(Transform):
    def __init__(self, *selected_keys: _Key, keep_rewards: bool = True, keep_dones: bool = True) -> None: ...

class ExcludeTransform(Transform):
    def __init__(self, *excluded_keys: _Key, inverse: bool = False) -> None: ...

class RenameTransform(Transform):
    def __init__(
        self,
        in_keys: _Keys,
        out_keys: _Keys,
        in_keys_inv: _Keys | None = None,
        out_keys_inv: _Keys | None = None,
        create_copy: bool = False,
    ) -> None: ...

class CatTensors(Transform):
    def __init__(
        self,
        in_keys: _Keys,
        out_key: _Key = "observation_vector",
        dim: int = -1,
        *,
        del_keys: bool = True,
        sort: bool = True,
    ) -> None: ...

class Stack(Transform):
    def __init__(self, in_keys: _Keys, out_key: _Key, dim: int = -1, *, del_keys: bool = True) -> None: ...

class FlattenObservation(Transform):
    def __init__(
        self, first_dim: int, last_dim: int, in_keys: _Keys | None = None, out_keys: _Keys | None = None
    ) -> None: ...

class UnsqueezeTransform(Transform):
    def __init__(
        self, dim: int, in_keys: _Keys, out_keys: _Keys | None = None, in_keys_inv: _Keys | None = None
    ) -> None: ...

class SqueezeTransform(UnsqueezeTransform): ...

class PermuteTransform(Transform):
    def __init__(
        self, dims: Sequence[int], in_keys: _Keys, out_keys: _Keys | None = None, in_keys_inv: _Keys | None = None
    ) -> None: ...

class ExpandAs(Transform):
    def __init__(self, in_key: _Key, ref_key: _Key, out_key: _Key | None = None) -> None: ...

class SequenceLines(Transform):
    def __init__(self, length: int) -> None: ...

class ToTensorImage(Transform):
    def __init__(
        self,
        from_int: bool | None = None,
        unsqueeze: bool = False,
        dtype: DTypeLike | None = None,
        *,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
        shape_tolerant: bool = False,
    ) -> None: ...

class Crop(Transform):
    def __init__(
        self,
        w: int,
        h: int | None = None,
        top: int = 0,
        left: int = 0,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
    ) -> None: ...

class CenterCrop(Transform):
    def __init__(
        self, w: int, h: int | None = None, in_keys: _Keys | None = None, out_keys: _Keys | None = None
    ) -> None: ...

class Resize(Transform):
    def __init__(
        self,
        w: int,
        h: int | None = None,
        interpolation: str = "bilinear",
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
        *,
        antialias: bool = True,
    ) -> None: ...

class GrayScale(Transform):
    def __init__(self, in_keys: _Keys | None = None, out_keys: _Keys | None = None) -> None: ...

class CatFrames(Transform):
    def __init__(
        self,
        N: int,
        dim: int,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
        padding: str = "same",
        padding_value: float = 0.0,
        done_key: _Key | None = None,
    ) -> None: ...

class ObservationNorm(Transform):
    def __init__(
        self,
        loc: ArrayLike,
        scale: ArrayLike,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
        in_keys_inv: _Keys | None = None,
        standard_normal: bool = False,
    ) -> None: ...

class ClipTransform(Transform):
    def __init__(
        self,
        in_keys: _Keys,
        out_keys: _Keys | None = None,
        in_keys_inv: _Keys | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
    ) -> None: ...

class RewardClipping(Transform):
    def __init__(
        self,
        clamp_min: float | None = None,
        clamp_max: float | None = None,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
    ) -> None: ...

class BinarizeReward(Transform):
    def __init__(self, in_keys: _Keys | None = None, out_keys: _Keys | None = None) -> None: ...

class SignTransform(Transform):
    def __init__(self, in_keys: _Keys, out_keys: _Keys | None = None, in_keys_inv: _Keys | None = None) -> None: ...

class RewardScaling(Transform):
    def __init__(
        self, loc: ArrayLike, scale: ArrayLike, key: _Key | None = None, standard_normal: bool = False
    ) -> None: ...

class FiniteTensorDictCheck(Transform):
    def __init__(self) -> None: ...

class _StepTransform(Transform):
    def make(self) -> _rill.Transform: ...

class StepCounter(_StepTransform):
    def __init__(
        self,
        max_steps: int | None = None,
        truncated_key: _Key | None = None,
        step_count_key: _Key | None = None,
        update_done: bool = True,
    ) -> None: ...

class RewardSum(_StepTransform):
    def __init__(self, in_keys: _Keys = ..., out_keys: _Keys = ...) -> None: ...

class InitTracker(_StepTransform):
    def __init__(self, init_key: _Key = "is_init") -> None: ...

class TrajCounter(_StepTransform):
    def __init__(self, out_key: _Key = "traj_count") -> None: ...

class VecNorm(_StepTransform):
    def __init__(
        self,
        in_keys: _Keys,
        shapes: Sequence[Sequence[int]],
        out_keys: _Keys | None = None,
        decay: float = 0.9999,
        eps: float = 1e-4,
    ) -> None: ...

class BurnInTransform(Transform):
    def __init__(self, burn_in: int, *, mask_key: _Key | None = None) -> None: ...

class RandomCropTensorDict(Transform):
    def __init__(
        self, sub_seq_len: int, sample_dim: int = -1, mask_key: _Key | None = None, *, seed: int = 0
    ) -> None: ...

class NextObservationDelta(Transform):
    def __init__(
        self, in_keys: _Keys | None = None, delta_dtype: DTypeLike | None = None, drop_delta: bool = True
    ) -> None: ...

class NextStateReconstructor(Transform):
    def __init__(
        self,
        keys: _Keys = ...,
        *,
        traj_key: _Key | None = None,
        done_key: _Key | None = None,
        step_count_key: _Key | None = None,
        mask_key: _Key | None = None,
        fill_value: float | None = None,
        strict: bool = True,
    ) -> None: ...

class ActionChunkTransform(Transform):
    def __init__(
        self,
        chunk_size: int,
        action_key: _Key = "action",
        chunk_key: _Key | None = None,
        pad_key: _Key | None = None,
        done_key: _Key | None = None,
    ) -> None: ...

class Reward2GoTransform(Transform):
    def __init__(
        self,
        gamma: float = 1.0,
        in_keys: _Keys | None = None,
        out_keys: _Keys | None = None,
        done_key: _Key | None = None,
    ) -> None: ...

class DensifyReward(Transform):
    def __init__(
        self,
        reward_key: _Key | None = None,
        done_key: _Key | None = None,
        reward_key_out: _Key | None = None,
        discount: float = 1.0,
    ) -> None: ...

class GAE(Transform):
    def __init__(
        self, *, gamma: float = 0.99, lmbda: float = 0.95, average_gae: bool = False, **keys: _Key
    ) -> None: ...

class TDLambdaEstimator(Transform):
    def __init__(self, *, gamma: float = 0.99, lmbda: float = 0.95, **keys: _Key) -> None: ...

class TD0Estimator(TDLambdaEstimator):
    def __init__(self, *, gamma: float = 0.99, **keys: _Key) -> None: ...

class TD1Estimator(TDLambdaEstimator):
    def __init__(self, *, gamma: float = 0.99, **keys: _Key) -> None: ...

class VTrace(Transform):
    def __init__(
        self,
        *,
        gamma: float = 0.99,
        rho_thresh: float = 1.0,
        c_thresh: float = 1.0,
        average_adv: bool = False,
        **keys: _Key,
    ) -> None: ...
