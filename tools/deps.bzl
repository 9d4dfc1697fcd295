"""Makes the repositories of pins.bzl, in WORKSPACE builds."""

load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
load("//tools:bazel4.bzl", "builtin_rules_java", "no_coverage_tools")
load("//tools:debian_archive.bzl", "debian_archive")
load("//tools:pins.bzl", "PINS")
load("//tools/cuda:cuda_configure.bzl", "cuda_repositories")
load("//tools/flight:flight_configure.bzl", "flight_repositories")
load("//tools/mpi:mpi_configure.bzl", "mpi_repositories")
load("//tools/mujoco:mujoco_configure.bzl", "mujoco_repositories")
load("//tools/onnx:onnx_configure.bzl", "onnx_repositories")
load("//tools/python:python_configure.bzl", "python_repositories")
load("//tools/torch:torch_configure.bzl", "torch_repositories")

def pinned_archive(name):
    """The repository `name` as pins.bzl has it."""
    pin = PINS[name]
    if "url" not in pin:
        debian_archive(
            name = name,
            build_file = Label(pin["build_file"]),
            path = pin["debian"],
            sha256 = pin["sha256"],
            strip_prefix = pin["strip_prefix"],
        )
        return
    args = {}
    if "build_file" in pin:
        args["build_file"] = Label(pin["build_file"])
    if "patch" in pin:
        args["patches"] = [Label(pin["patch"])]
        args["patch_args"] = ["-p1"]
    http_archive(
        name = name,
        sha256 = pin["sha256"],
        strip_prefix = pin["strip_prefix"],
        urls = [pin["url"]],
        **args
    )

def rill_dependencies():
    """All repositories that are not there yet; a consumer's own come first."""
    existing = native.existing_rules()

    # Debian's Bazel 4.2.3 reports no version.
    if not native.bazel_version or native.bazel_version.startswith("4."):
        if "rules_java" not in existing:
            builtin_rules_java(name = "rules_java")
        if "remote_coverage_tools" not in existing:
            no_coverage_tools(name = "remote_coverage_tools")
    for name in PINS:
        if name not in existing:
            pinned_archive(name)
    if "local_cuda" not in existing:
        cuda_repositories()
    if "local_flight" not in existing:
        flight_repositories()
    if "local_mpi" not in existing:
        mpi_repositories()
    if "local_mujoco" not in existing:
        mujoco_repositories()
    if "local_onnx" not in existing:
        onnx_repositories()
    if "local_python" not in existing:
        python_repositories()
    if "local_torch" not in existing:
        torch_repositories()
