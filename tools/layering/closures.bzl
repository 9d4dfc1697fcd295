"""What a target may need, beside the laws of its layer.

How many files that is, and of which libraries, is the table of docs/build.md; the tests
of this folder compare. A plain dict, as in laws.bzl.
"""

_TENSORS = ["base", "device", "tensors"]

_DICTS = _TENSORS + ["tensordict"]

_SPECS = _DICTS + ["specs"]

# What parts save of themselves.
_STATES = ["base/state", "tensordict/state"]

# What saves and loads a storage.
_SAVES = ["formats", "formats/consolidated", "formats/json", "formats/memmap", "formats/zip"]

_ROWS = [
    "device/graphs",
    "device/kernels",
    "device/staging",
    "device/uploads",
    "flow",
    "slots",
    "storage",
    "storage/chunks",
    "storage/dedup",
    "storage/dense",
    "storage/on_disk",
    "storage/ring",
    "storage/rows",
    "storage/sharing",
]

# target: the packages of this repository that it may reach, each without those
# below it. None: the law of its bundle is all.
CLOSURES = {
    "//base:base": None,
    "//slots:slots": None,
    "//device:device": None,
    "//tensors:tensors": None,
    "//tensordict:tensor_dict": _DICTS,
    "//tensordict:tensordict": None,
    "//specs:specs": None,
    "//tensors:eigen_view": _TENSORS,
    "//flow:flow": None,
    "//flow/weights:weight_store": _SPECS + [
        "flow",
        "flow/channel",
        "flow/weights",
    ],
    "//formats:formats": None,
    "//storage:dense_storage": _SPECS + _SAVES + _ROWS,
    "//storage:memmap_storage": _SPECS + _SAVES + _ROWS + ["storage/directory"],
    "//storage:storage": None,
    "//storage/compressed:compressed_storage": None,
    "//telemetry:telemetry": ["base", "telemetry"],
    "//samplers:uniform_sampler": ["base", "base/state", "samplers", "slots"],
    "//samplers:samplers": None,
    "//transforms:transforms": None,
    "//envs:cart_pole": _SPECS + _STATES + [
        "envs",
        "envs/classic_control",
        "envs/lanes",
    ],
    "//envs:envs": None,
    "//collectors:collectors": None,
    "//collectors:sync_collector": None,
    "//replay:replay_buffer": _SPECS + _STATES + _SAVES + [
        "device/graphs",
        "device/kernels",
        "device/uploads",
        "flow",
        "replay",
        "replay/options",
        "replay/parts",
        "replay/rows",
        "replay/sampling",
        "replay/writers",
        "samplers",
        "samplers/prioritized",
        "samplers/trajectories",
        "slots",
        "storage",
        "storage/dedup",
        "storage/live_rows",
        "storage/sharing",
        "transforms",
        "transforms/rows",
        "transforms/memory",
    ],
    "//replay:replay": None,
    "//examples/first_buffer:first_buffer": _SPECS + _STATES + _SAVES + _ROWS + [
        "collectors",
        "collectors/devices",
        "envs",
        "envs/classic_control",
        "envs/lanes",
        "envs/policies",
        "envs/steps",
        "envs/transformed",
        "envs/wrappers",
        "examples/first_buffer",
        "replay",
        "replay/options",
        "replay/parts",
        "replay/rows",
        "replay/sampling",
        "replay/writers",
        "samplers",
        "samplers/prioritized",
        "samplers/trajectories",
        "storage/live_rows",
        "transforms",
        "transforms/rows",
        "transforms/memory",
        "transforms/steps",
    ],
}
