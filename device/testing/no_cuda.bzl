"""rill_no_cuda_test: a test that fails if the program touches CUDA."""

load("//tools:rill.bzl", "rill_cc_test")

_STAND_IN = "//device/testing:driver/libcuda.so.1"

def rill_no_cuda_test(name, deps = [], data = [], env = {}, **kwargs):
    """A rill_cc_test that runs beside a recording stand-in for libcuda.so.1.

    The program fails at its end if the stand-in was loaded or called, by it or
    by a process that it started. The same sources may be a rill_cc_test too.

    Args:
      name: <stem>_no_cuda_test, or the test's own name.
      deps: as for rill_cc_test.
      data: as for rill_cc_test.
      env: as for rill_cc_test.
      **kwargs: as for rill_cc_test.
    """
    rill_cc_test(
        name = name,
        data = data + [_STAND_IN],
        env = dict(env, LD_LIBRARY_PATH = "device/testing/driver"),
        deps = deps + ["//device/testing:cuda_record"],
        **kwargs
    )
