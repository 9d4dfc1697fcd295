"""The layers of Rill as data: who may reach whom, however indirectly.

Plain dicts, read by Starlark (layering.bzl) and by Python (the lint).
"""

# package: the packages of this repository that its bundle //package:package
# may reach. Everything that is not here is forbidden; rows come from
# docs/design.md, bottom up. tools/ holds build settings and may be reached by
# all. examples/ and benchmarks/ see everything; testing/ is testonly, so that
# Bazel itself keeps it out of libraries.
LAWS = {
    # Row 0: base knows nothing, device no tensors.
    "base": [],
    "device": ["base"],
    # Row 1: arrays know no names, dictionaries of them no domains, and specs no
    # RL.
    "tensors": ["base", "device"],
    "tensordict": ["base", "device", "tensors"],
    "specs": ["base", "device", "tensordict", "tensors"],
    # Row 2: slots are numbers and know no tensors, as telemetry does; formats
    # know no RL; flow knows neither environments nor where batches are stored.
    "slots": ["base"],
    "telemetry": ["base"],
    "formats": ["base", "device", "specs", "tensordict", "tensors"],
    "flow": ["base", "device", "specs", "tensordict", "tensors"],
    # Row 3. storage does not know how rows are chosen, samplers not what rows
    # hold (device: priorities lie there), transforms not who calls them, envs no replay.
    "storage": ["base", "device", "flow", "formats", "slots", "specs", "tensordict", "tensors"],
    "samplers": ["base", "device", "slots"],
    "transforms": ["base", "device", "formats", "slots", "specs", "tensordict", "tensors"],
    "envs": ["base", "device", "formats", "specs", "tensordict", "tensors", "transforms"],
    # Beside them: what parts note to flow's DecisionLog. Nothing uses it.
    "recorder": ["base", "device", "flow", "specs", "tensordict", "tensors"],
    # Between them: arithmetic on batches, which transforms do not know of.
    "estimators": ["base", "device", "specs", "tensordict", "tensors", "transforms"],
    # Row 4. replay knows no environments; collectors fill a Sink and know
    # neither replay nor what is under it.
    "replay": ["base", "device", "flow", "formats", "samplers", "slots", "specs", "storage", "tensordict", "tensors", "transforms"],
    "collectors": ["base", "device", "envs", "flow", "formats", "specs", "tensordict", "tensors", "transforms"],
    # Row 5: buffers and weights for other programs; they know no environment.
    "distributed": ["base", "device", "flow", "formats", "replay", "samplers", "slots", "specs", "storage", "tensordict", "tensors", "transforms"],
    # Row 5: CUDA's backend and kernels for all of them, LibTorch beside them, and
    # policies by ONNX Runtime. Nothing depends on any.
    "cuda": ["base", "device", "estimators", "specs", "tensordict", "tensors", "transforms"],
    "libtorch": ["base", "collectors", "device", "envs", "estimators", "flow", "formats", "replay", "samplers", "slots", "specs", "storage", "telemetry", "tensordict", "tensors", "transforms"],
    "onnx": ["base", "device", "envs", "formats", "specs", "tensordict", "tensors", "transforms"],
    # Everything but what has a library of others, for Python programs.
    "python": ["base", "collectors", "device", "envs", "estimators", "flow", "formats", "replay", "samplers", "slots", "specs", "storage", "telemetry", "tensordict", "tensors", "transforms"],
}

# Libraries that are left out of their package's bundle, and why. They keep the
# law of their package, each in a test of its own.
BESIDE_BUNDLE = {
    "//distributed/arrow:arrow_batch": "Arrow is for those who ask for it, by --config=flight",
    "//distributed/arrow:arrow_c_data": "Arrow is for those who ask for it, by --config=flight",
    "//distributed/transport/flight:flight_transport": "Arrow Flight is for those who ask for it, by --config=flight",
    "//distributed/transport/mpi:mpi_transport": "MPI is for those who ask for it, by --config=mpi",
    "//envs/mujoco:mujoco": "MuJoCo is for those who ask for it, by --config=mujoco",
    "//storage/compressed:compressed_storage": "Zstandard is for those who ask for it",
    "//tensors:eigen_view": "Eigen is for those who ask for it",
}
