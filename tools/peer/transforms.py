# SPDX-License-Identifier: Apache-2.0
"""Transforms and estimators of TorchRL beside those of Rill.

Each case makes random batches (of one seed for each), runs TorchRL's class on
them, has run_transforms.cc run Rill's of the same name, and compares all
entries: exactly where values are moved, within RELATIVE where floats are added
and multiplied.
"""
import importlib.util
import os
import zlib

import torch
from tensordict import TensorDict

import torchrl.envs.transforms as rl
from torchrl.collectors.utils import split_trajectories
from torchrl.data import Bounded, Categorical, Composite, OneHot, Unbounded
from torchrl.data.postprocs import DensifyReward
from torchrl.envs import EnvBase
from torchrl.envs.transforms.transforms import FlattenTensorDict
from torchrl.objectives.value import functional

RELATIVE = 1e-5
REWARD = ("next", "reward")
SHAPES = ((5,), (2, 3))
TIME_SHAPES = ((8,), (3, 9))  # Time is the last dimension.
HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None


def steps(*shape, is_whole=False):
    """Steps with many ends, and a beginning behind the last."""
    done = torch.rand(*shape, 1) < 0.3
    done[..., -1, :] = is_whole
    terminated = done & (torch.rand(*shape, 1) < 0.5)
    observation = torch.randn(*shape, 4)
    # What the next step begins with, but at ends.
    behind = torch.cat([observation[..., 1:, :], torch.randn_like(observation[..., :1, :])], -2)
    behind = torch.where(done, torch.randn_like(behind), behind)
    return TensorDict({
        "observation": observation, "velocity": torch.randn(*shape, 4),
        "action": torch.randint(-3, 4, (*shape, 2)), "info": torch.randn(*shape, 3, dtype=torch.float64),
        "next": TensorDict({"observation": behind, "reward": torch.randn(*shape, 1), "done": done,
                            "terminated": terminated, "truncated": done & ~terminated}, shape)}, shape)


def whole_steps(*shape):
    """The last step of each line is an end."""
    return steps(*shape, is_whole=True)


def estimated(*shape):
    """Steps with what networks add."""
    td = steps(*shape)
    td["state_value"], td["next", "state_value"] = torch.randn(*shape, 1), torch.randn(*shape, 1)
    td["log_prob"], td["action_log_prob"] = torch.randn(*shape, 1), torch.randn(*shape, 1)
    return td


def numbered(*shape):
    """Steps that say which trajectory they are of."""
    td = steps(*shape)
    td["traj_ids"] = torch.arange(td.numel()).view(shape) // 3
    return td


def differences(*shape, dtype=torch.float16):
    """Steps whose next observations are stored as differences."""
    td = steps(*shape)
    td["next", "delta", "observation"] = (td["next", "observation"] - td["observation"]).to(dtype)
    return td.exclude(("next", "observation"))


def versioned(*shape):
    """Steps that say which version of the policy made them."""
    td = steps(*shape)
    td["policy_version"] = torch.randint(0, 10, (*shape, 1))
    return td


def images(*shape):
    """Images with the colours behind and in front."""
    pixels = torch.randint(0, 256, (*shape, 9, 7, 3), dtype=torch.uint8)
    return TensorDict({"pixels": pixels, "image": torch.rand(*shape, 3, 9, 7),
                       "bytes": pixels.movedim(-1, -3).contiguous(),
                       "next": {"done": torch.rand(*shape, 1) < 0.3}}, shape)


CASES = {}


class Case:
    """peer: a function of a batch, TorchRL's. is_exact: it moves values. reduce: to
    that part of both results which is to be the same."""

    def __init__(self, name, peer, make=steps, shapes=SHAPES, is_exact=True, needs_torchvision=False,
                 reduce=lambda td: td):
        self.name, self.peer, self.make, self.shapes = name, peer, make, shapes
        self.is_exact, self.needs_torchvision, self.reduce = is_exact, needs_torchvision, reduce
        CASES[name] = self

    def batches(self):
        torch.manual_seed(zlib.crc32(self.name.encode()))
        return [self.make(*shape) for shape in self.shapes]


def moves(name, make_transform, **options):
    Case(name, lambda td: make_transform().forward(td), **options)


def moves_back(name, make_transform, **options):
    Case(name, lambda td: make_transform().inv(td), **options)


def computes(name, make_transform, **options):
    moves(name, make_transform, is_exact=False, **options)


moves("DTypeCast", lambda: rl.DTypeCastTransform(torch.int64, torch.int32, in_keys=["action"]))
moves("DTypeCast/all", lambda: rl.DTypeCastTransform(torch.float32, torch.float64))
moves_back("DTypeCast/inverse", lambda: rl.DTypeCastTransform(torch.int32, torch.int64, in_keys=[],
                                                              in_keys_inv=["action"]))
moves("DoubleToFloat", lambda: rl.DoubleToFloat(in_keys=["info"]))
moves("DoubleToFloat/all", lambda: rl.DoubleToFloat())
moves("Select", lambda: rl.SelectTransform("observation", REWARD, keep_rewards=False, keep_dones=False))
moves("Select/dictionary", lambda: rl.SelectTransform("action", "next"))
moves("Exclude", lambda: rl.ExcludeTransform("info", ("next", "observation")))
moves_back("Exclude/inverse", lambda: rl.ExcludeTransform("info", inverse=True))
moves("Rename", lambda: rl.RenameTransform(["observation", REWARD], ["state", ("next", "gain")]))
moves("Rename/copy", lambda: rl.RenameTransform(["observation"], ["state"], create_copy=True))
moves_back("Rename/inverse", lambda: rl.RenameTransform([], [], ["state"], ["observation"]))
moves("FlattenObservation", lambda: rl.FlattenObservation(-3, -1, in_keys=["pixels"]), make=images)
moves("FlattenObservation/part", lambda: rl.FlattenObservation(-2, -1, in_keys=["pixels"], out_keys=["flat"]),
      make=images)
moves("Permute", lambda: rl.PermuteTransform((-1, -3, -2), in_keys=["pixels"]), make=images)
moves_back("Permute/inverse", lambda: rl.PermuteTransform((-1, -3, -2), in_keys=[], in_keys_inv=["pixels"]),
           make=images)
moves("Squeeze", lambda: rl.SqueezeTransform(-1, in_keys=[REWARD]))
moves("Unsqueeze", lambda: rl.UnsqueezeTransform(-2, in_keys=["observation"]))
moves_back("Unsqueeze/inverse", lambda: rl.UnsqueezeTransform(-1, in_keys=[], in_keys_inv=[REWARD]))
moves("CatTensors", lambda: rl.CatTensors(["velocity", "observation"]))
moves("CatTensors/unsorted", lambda: rl.CatTensors(["velocity", "observation"], "joined", del_keys=False, sort=False))
moves("Stack", lambda: rl.Stack(["velocity", "observation"], "both"))
moves("Stack/before", lambda: rl.Stack(["velocity", "observation"], "both", dim=-2, del_keys=False))
moves("ExpandAs", lambda: rl.ExpandAs(("next", "done"), "action", "ends"))
moves("DeviceCast", lambda: rl.DeviceCastTransform("cpu"))
moves("FiniteTensorDictCheck", lambda: rl.FiniteTensorDictCheck())


def with_empty(*shape):
    """Steps with dictionaries that hold nothing, or only such ones."""
    td = steps(*shape)
    td.create_nested("empty")
    td.create_nested(("outer", "inner"))
    td["next"].create_nested("nothing")
    return td


def entries(td):
    """The keys of dictionaries too, each with a leaf."""
    return TensorDict({"/".join((key,) if isinstance(key, str) else key): torch.ones(td.shape)
                       for key in td.keys(True)}, td.shape)


moves("RemoveEmptySpecs", lambda: rl.RemoveEmptySpecs(), make=with_empty, reduce=entries)
moves_back("FlattenTensorDict", lambda: FlattenTensorDict())
moves("NextStateReconstructor", lambda: rl.NextStateReconstructor(traj_key="traj_ids"), make=numbered, shapes=((12,),))

LOC = torch.tensor([0.5, -1.25, 0, 3])
computes("ObservationNorm", lambda: rl.ObservationNorm(LOC, torch.tensor([2, 0.75, -1, 0.1]), in_keys=["observation"]))
computes("ObservationNorm/standard_normal",
         lambda: rl.ObservationNorm(LOC, torch.tensor([2, 0.75, 1, 0.1]), in_keys=["observation"],
                                    out_keys=["normal"], standard_normal=True))
Case("ObservationNorm/inverse",
     lambda td: rl.ObservationNorm(0.5, 0.3, in_keys=[], in_keys_inv=["observation"], standard_normal=True).inv(td),
     is_exact=False)


def normalised_by_stats(dims, standard_normal):
    """By numbers that TorchRL's init_stats takes of the same steps, played by an environment."""
    def peer(td):
        from beside import Played  # That takes from here too.
        # Without ends, behind which an environment would begin anew.
        played = td.clone().set(("next", "terminated"), torch.zeros(*td.shape, 1, dtype=torch.bool))
        played["next", "observation"][:, :-1] = td["observation"][:, 1:]
        norm = rl.ObservationNorm(in_keys=["observation"], standard_normal=standard_normal)
        env = rl.TransformedEnv(Played(played), norm)
        env.transform.init_stats(td.shape[1], reduce_dim=dims, cat_dim=1)
        return rl.ObservationNorm(norm.loc, norm.scale, in_keys=["observation"],
                                  standard_normal=standard_normal).forward(td)
    return peer


Case("ObservationNorm/init_stats", normalised_by_stats((0, 1), False), shapes=((3, 9),), is_exact=False)
Case("ObservationNorm/init_stats_standard_normal", normalised_by_stats((0, 1, 2), True), shapes=((3, 9),),
     is_exact=False)
computes("RewardScaling", lambda: rl.RewardScaling(0.7, 0.1, in_keys=[REWARD]))
computes("RewardScaling/standard_normal", lambda: rl.RewardScaling(0.7, 0.1, in_keys=[REWARD], standard_normal=True))
moves("RewardClipping", lambda: rl.RewardClipping(-0.5, 1, in_keys=[REWARD]))
moves("Sign", lambda: rl.SignTransform(in_keys=[REWARD, "action"]))
moves("Clip", lambda: rl.ClipTransform(in_keys=["observation", "info"], low=-0.5, high=1))
moves_back("Clip/inverse", lambda: rl.ClipTransform(in_keys=[], in_keys_inv=["observation"], low=0))


def binarize_reward(td):
    # TorchRL makes int8 of rewards, Rill keeps their dtype.
    td = rl.BinarizeReward(in_keys=[REWARD]).forward(td)
    return td.set(REWARD, td[REWARD].float())


Case("BinarizeReward", binarize_reward)


def classes(td):
    """Which rows have one hash: each row's first equal one."""
    rows = td["hash"].flatten(0, td.ndim - 1)
    first = (rows.unsqueeze(0) == rows.unsqueeze(1)).all(-1).int().argmax(-1)
    return td.set("hash", first.view(*td.shape, 1))


# Of 24 rows many are equal. TorchRL's hash is another one, of texts.
Case("Hash", lambda td: classes(td.set("hash", torch.stack([rl.Hash.reproducible_hash(str(row.tolist()))
                                                           for row in td["action"].flatten(0, td.ndim - 1)])
                                       .view(*td.shape, 32))),
     make=lambda *shape: steps(*shape).update({"action": torch.randint(0, 3, (*shape, 2))}),
     shapes=((24,), (4, 6)), reduce=classes)


def chain():
    return rl.Compose(rl.RewardScaling(0.7, 0.1, in_keys=[REWARD]), rl.ClipTransform(in_keys=[REWARD], low=0.65),
                      rl.RenameTransform([REWARD], [("next", "gain")], ["action"], ["torque"]),
                      rl.UnsqueezeTransform(-1, in_keys=[("next", "gain")]),
                      rl.DTypeCastTransform(torch.int32, torch.int64, in_keys=[], in_keys_inv=["torque"]))


computes("Compose", chain)
moves_back("Compose/inverse", chain, make=lambda *shape: steps(*shape).rename_key_("action", "torque"))


def with_one_window(*shape):
    """Lines with as many steps as a crop has, so that none is drawn."""
    td = steps(*shape)
    td["mask"] = (torch.arange(shape[-1]) < 5).expand(shape).contiguous()
    return td


moves("RandomCropTensorDict", lambda: rl.RandomCropTensorDict(5, mask_key="mask"), make=with_one_window,
      shapes=TIME_SHAPES)
moves("NextObservationDelta", lambda: rl.NextObservationDelta(["observation"]), make=differences)
moves("NextObservationDelta/kept",
      lambda: rl.NextObservationDelta(["observation"], delta_dtype=torch.bfloat16, drop_delta=False),
      make=lambda *shape: differences(*shape, dtype=torch.bfloat16))


def written_as_difference(td):
    # TorchRL's does that beside the environment.
    transform = rl.NextObservationDelta(["observation"])
    transform._step(td, td["next"])
    transform._post_step_mdp_hooks(td, None)
    return td


Case("NextObservationDelta/inverse", written_as_difference)
moves("PolicyAgeFilter", lambda: rl.PolicyAgeFilter(9, 4), make=versioned, shapes=((40,), (40, 2)))
computes("Unary", lambda: rl.UnaryTransform(["observation"], ["observation"], fn=lambda x: x * x - 0.5))
moves("Unary/dtype", lambda: rl.UnaryTransform(["observation"], ["whole"], fn=lambda x: x.floor().long()))
moves_back("Unary/inverse", lambda: rl.UnaryTransform([], [], ["observation"], ["observation"], fn=torch.square,
                                                      inv_fn=lambda x: x / 2))

computes("ActionScaling", lambda: rl.ActionScaling(loc=LOC, scale=torch.tensor([2, 0.75, -1, 0.1]),
                                                   in_keys=["observation"]))
Case("ActionScaling/inverse",
     lambda td: rl.ActionScaling(["observation"], loc=0.5, scale=2.0, standard_normal=False).inv(td), is_exact=False)
moves("FlattenAction", lambda: rl.FlattenAction(-3, -2, in_keys=["pixels"]), make=images)
moves_back("FlattenAction/inverse", lambda: rl.FlattenAction(in_keys_inv=["observation"], action_shape=(2, 2)))
moves("ActionChunk", lambda: rl.ActionChunkTransform(3), shapes=TIME_SHAPES)
moves("ActionChunk/endless", lambda: rl.ActionChunkTransform(4, done_key=None), shapes=TIME_SHAPES)


class Echo(EnvBase):
    """An environment that shows which action it got."""

    def __init__(self, action, lanes):
        super().__init__(batch_size=(lanes,))
        self.action_spec = action.expand(lanes, *action.shape)
        self.observation_spec = Composite(inner=Unbounded(self.action_spec.shape, dtype=action.dtype), shape=(lanes,))
        self.reward_spec = Unbounded((lanes, 1))

    def _reset(self, tensordict=None, **options):
        return self.full_observation_spec.zero()

    def _step(self, tensordict):
        state = self.full_observation_spec.zero().set("inner", tensordict["action"].clone())
        flag = torch.zeros(*self.batch_size, 1, dtype=torch.bool)
        return state.update({"reward": torch.zeros(*self.batch_size, 1), "done": flag, "terminated": flag})

    def _set_seed(self, seed):
        pass


def acts(name, make_transform, inner, choose, **options):
    """A transform of actions beside an environment: what that gets."""
    def peer(td):
        env = rl.TransformedEnv(Echo(inner, td.shape[0]), make_transform())
        return td.set("inner", env.step(env.reset().set("action", td["action"]))["next", "inner"])
    Case(name, peer, make=lambda lanes: TensorDict({"action": choose(lanes)}, (lanes,)), shapes=((9,),), **options)


TORQUES = Bounded(torch.tensor([-2, 0.5]), torch.tensor([3, 0.75]))
STRATEGY = rl.ActionDiscretizer.SamplingStrategy
for sampling, name in ((STRATEGY.MEDIAN, ""), (STRATEGY.LOW, "/low"), (STRATEGY.HIGH, "/high")):
    acts("ActionDiscretizer" + name, lambda sampling=sampling: rl.ActionDiscretizer(7, sampling=sampling), TORQUES,
         lambda lanes: torch.randint(0, 7, (lanes, 2)), is_exact=False)
acts("ActionDiscretizer/one_hot", lambda: rl.ActionDiscretizer(7, categorical=False), TORQUES,
     lambda lanes: torch.nn.functional.one_hot(torch.randint(0, 7, (lanes, 2)), 7).flatten(1).bool(), is_exact=False)


def either(td):
    """Those that are drawn anew are drawn by another generator."""
    td["inner"][td["action"].argmax(-1) >= 4] = 0
    return td


acts("DiscreteActionProjection", lambda: rl.DiscreteActionProjection(4, 6), OneHot(4, dtype=torch.int64),
     lambda lanes: torch.nn.functional.one_hot(torch.arange(lanes) % 6, 6), reduce=either)


def allowed(td):
    """Whether a lane's action went through."""
    return td.set("inner", td["inner"] == td["action"])


def masked(td):
    """TorchRL's ActionMask changes the spec, to which an action belongs or not."""
    def is_in(action, mask):
        spec = Categorical(5)
        spec.update_mask(mask)
        return spec.is_in(action)
    passed = [is_in(*lane) for lane in zip(td["action"], td["action_mask"])]
    return td.set("inner", torch.where(torch.tensor(passed), td["action"], -1))


def choices(lanes):
    mask = torch.rand(lanes, 5) < 0.5
    mask[:, 2] = True
    return TensorDict({"action": torch.randint(0, 5, (lanes,)), "action_mask": mask}, (lanes,))


Case("ActionMask", masked, make=choices, shapes=((40,),), reduce=allowed)


def resize(rows, columns, mode):
    """TorchRL's, whose `w` are rows; without torchvision the interpolate of torch that it calls."""
    def peer(td):
        for key in ("image", "bytes") if mode == "nearest" else ("image",):
            if HAS_TORCHVISION:
                rl.Resize(rows, columns, interpolation=mode, in_keys=[key]).forward(td)
                continue
            flat = td[key].flatten(0, td.ndim - 1)
            options = {"antialias": True, "align_corners": False} if mode == "bilinear" else {}
            made = torch.nn.functional.interpolate(flat, (rows, columns), mode=mode, **options)
            td[key] = made.unflatten(0, td.shape)
        return td
    return peer


computes("ToTensorImage", lambda: rl.ToTensorImage(in_keys=["pixels"]), make=images)
moves("ToTensorImage/unscaled", lambda: rl.ToTensorImage(False, dtype=torch.float64, in_keys=["pixels"],
                                                         out_keys=["float"]), make=images)
moves("GrayScale", lambda: rl.GrayScale(in_keys=["image", "bytes"]), make=images)
Case("Resize", resize(4, 5, "bilinear"), make=images, is_exact=False)
Case("Resize/larger", resize(13, 11, "bilinear"), make=images, is_exact=False)
Case("Resize/nearest", resize(13, 5, "nearest"), make=images)
# Of TorchRL's crops `w` counts rows, `h` columns.
moves("CenterCrop", lambda: rl.CenterCrop(5, 3, in_keys=["image"]), make=images, needs_torchvision=True)
moves("CenterCrop/odd", lambda: rl.CenterCrop(4, in_keys=["image"]), make=images, needs_torchvision=True)
moves("Crop", lambda: rl.Crop(5, 3, top=2, left=1, in_keys=["bytes"]), make=images, needs_torchvision=True)
moves("CatFrames", lambda: rl.CatFrames(3, -1, in_keys=["observation", ("next", "observation")]), shapes=TIME_SHAPES)
moves("CatFrames/constant", lambda: rl.CatFrames(4, -3, in_keys=["pixels"], out_keys=["frames"], padding="constant",
                                                 padding_value=7), make=images, shapes=TIME_SHAPES)

Case("Reward2Go", lambda td: rl.Reward2GoTransform(0.9).inv(td), make=whole_steps, shapes=TIME_SHAPES,
     is_exact=False)
Case("DensifyReward", lambda td: DensifyReward(reward_key_out="dense", discount=0.95)(td), shapes=TIME_SHAPES,
     is_exact=False)

Case("SplitTrajectories", lambda td: split_trajectories(td, trajectory_key="traj_ids"), make=numbered,
     shapes=((8,), (3, 9)))
Case("SplitTrajectories/ends", split_trajectories, shapes=TIME_SHAPES)


def values(td):
    """What the estimators of `functional` take."""
    entries = {"next_state_value": td["next", "state_value"], "reward": td[REWARD], "done": td["next", "done"],
               "terminated": td["next", "terminated"]}
    return td["state_value"], entries


def estimates_return(name, estimate):
    def peer(td):
        value, entries = values(td)
        td["value_target"] = estimate(0.97, **entries)
        td["advantage"] = td["value_target"] - value
        return td
    Case(name, peer, make=estimated, shapes=TIME_SHAPES, is_exact=False)


def estimates_advantage(name, estimate, is_averaged=False):
    def peer(td):
        value, entries = values(td)
        td["advantage"], td["value_target"] = estimate(td, state_value=value, **entries)
        if is_averaged:
            # As TorchRL's GAE, whose class wants a network.
            td["advantage"] = (td["advantage"] - td["advantage"].mean()) / td["advantage"].std().clamp_min(1e-4)
        return td
    Case(name, peer, make=estimated, shapes=TIME_SHAPES, is_exact=False)


def gae(td, **entries):
    return functional.generalized_advantage_estimate(0.97, 0.8, **entries)


estimates_return("TD0Estimator", functional.td0_return_estimate)
estimates_return("TD1Estimator", functional.td1_return_estimate)
estimates_return("TDLambdaEstimator", lambda gamma, **entries: functional.td_lambda_return_estimate(
    gamma, 0.8, **entries))
estimates_advantage("GAE", gae)
estimates_advantage("GAE/average_gae", gae, is_averaged=True)
estimates_advantage("VTrace", lambda td, **entries: functional.vtrace_advantage_estimate(
    0.97, td["log_prob"], td["action_log_prob"], rho_thresh=1.1, c_thresh=0.9, **entries))


def leaves(td):
    return {key: td[key] for key in td.keys(True, True)}


def first_difference(want, got, is_exact):
    """(index, want, got) of the first element that differs, or None."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return "", (want.dtype, tuple(want.shape)), (got.dtype, tuple(got.shape))
    if is_exact or not want.is_floating_point():
        is_same = (want == got) | ((want != want) & (got != got))
    else:
        # Sums may cancel: numbers of the size of the leaf's are meant.
        size = want.abs().max() if want.numel() else 0
        is_same = torch.isclose(want, got, rtol=RELATIVE, atol=0.1 * RELATIVE * float(size), equal_nan=True)
    if is_same.all():
        return None
    index = tuple((~is_same).nonzero()[0].tolist())
    return index, want[index].item(), got[index].item()


def check_equal(want, got, is_exact):
    if want.batch_size != got.batch_size:
        raise AssertionError("batch shape: TorchRL %s, Rill %s" % (tuple(want.batch_size), tuple(got.batch_size)))
    want, got = leaves(want), leaves(got)
    for key in sorted(want.keys() | got.keys(), key=str):
        if key not in want or key not in got:
            raise AssertionError("%s is there in %s alone" % (key, "TorchRL" if key in want else "Rill"))
        found = first_difference(want[key], got[key], is_exact)
        if found:
            raise AssertionError("%s at %s: TorchRL %s, Rill %s" % (key, *found))


class Exchange:
    def __init__(self, folder, run_transforms, run):
        self.folder, self.run_transforms, self.run = folder, run_transforms, run

    def made_by_rill(self, name, batches):
        paths = []
        for i, batch in enumerate(batches):
            path = os.path.join(self.folder, "%s_%d" % (name.replace("/", "_"), i))
            batch.memmap(path + "_in")
            paths += [path + "_in", path + "_out"]
        status, _, error = self.run(self.run_transforms, name, *paths)
        assert status == 0, error
        return [TensorDict.load_memmap(path) for path in paths[1::2]]

    def compare(self, case):
        batches = case.batches()
        got = self.made_by_rill(case.name, batches)
        for batch, made in zip(batches, got):
            check_equal(case.reduce(case.peer(batch.clone())), case.reduce(made.clone()), case.is_exact)

    def compare_multi_step(self):
        """Over three batches, as both hold rows back; TorchRL some more, so that
        compared are those that it writes. The flags differ: Rill's are those of
        the window. Rill's numbers of steps are [..., 1]."""
        torch.manual_seed(4)
        batches = [steps(2, 7) for _ in range(3)]
        got = torch.cat(self.made_by_rill("MultiStep", [td.clone() for td in batches]), -1)
        transform = rl.MultiStepTransform(3, 0.9)
        want = torch.cat([transform.inv(td) for td in batches], -1)
        flags = [("next", name) for name in ("done", "terminated", "truncated")]
        want = want.exclude(*flags, ("next", "original_reward"), "nonterminal")
        for key in ("steps_to_next_obs", "gamma"):
            want[key] = want[key].unsqueeze(-1)
        check_equal(want, got.exclude(*flags)[:, :want.shape[-1]], is_exact=False)


def run(exchange, run_transforms, run_command):
    folder = os.path.join(exchange.folder, "transforms")
    os.makedirs(folder)
    ours = Exchange(folder, run_transforms, run_command)
    if not HAS_TORCHVISION:
        print("torchvision is not installed here: Resize is compared with torch's interpolate", flush=True)
    for name, case in CASES.items():
        if case.needs_torchvision and not HAS_TORCHVISION:
            exchange.skip("transform " + name, "TorchRL's needs torchvision")
        else:
            exchange.check("transform " + name, lambda: ours.compare(case))
    exchange.check("transform MultiStep", ours.compare_multi_step)
