"""Module extensions: the repositories that MODULE.bazel takes from here."""

load("//tools:deps.bzl", "pinned_archive")
load("//tools/cuda:cuda_configure.bzl", "cuda_repositories")
load("//tools/flight:flight_configure.bzl", "flight_repositories")
load("//tools/mpi:mpi_configure.bzl", "mpi_repositories")
load("//tools/mujoco:mujoco_configure.bzl", "mujoco_repositories")
load("//tools/onnx:onnx_configure.bzl", "onnx_repositories")
load("//tools/python:python_configure.bzl", "python_repositories")
load("//tools/torch:torch_configure.bzl", "torch_repositories")

def _rill_deps_impl(_ctx):
    pinned_archive("random123")

rill_deps = module_extension(implementation = _rill_deps_impl)

def _rill_dev_deps_impl(_ctx):
    pinned_archive("com_github_google_benchmark")

rill_dev_deps = module_extension(implementation = _rill_dev_deps_impl)

def _cuda_impl(_ctx):
    cuda_repositories()

cuda = module_extension(implementation = _cuda_impl)

def _flight_impl(_ctx):
    flight_repositories()

flight = module_extension(implementation = _flight_impl)

def _mpi_impl(_ctx):
    mpi_repositories()

mpi = module_extension(implementation = _mpi_impl)

def _mujoco_impl(_ctx):
    mujoco_repositories()

mujoco = module_extension(implementation = _mujoco_impl)

def _onnx_impl(_ctx):
    onnx_repositories()

onnx = module_extension(implementation = _onnx_impl)

def _python_impl(_ctx):
    python_repositories()

python = module_extension(implementation = _python_impl)

def _torch_impl(_ctx):
    torch_repositories()

torch = module_extension(implementation = _torch_impl)
