"""rill_device_test: one test on the fake device and on a CUDA device."""

load("//tools:rill.bzl", "rill_cc_test")
load("//tools/cuda:cuda.bzl", "requires_cuda")

def rill_device_test(name, srcs, deps = [], tags = [], **kwargs):
    """A test whose sources take their device from DeviceUnderTest().

    <stem>_test runs on fake:0 and has the tag fake-device; <stem>_cuda_test runs
    on cuda:0, is skipped by wildcards without --config=cuda, and has the tag
    requires-gpu. Both are linked from one compilation.

    Args:
      name: <stem>_test.
      srcs: as for rill_cc_test.
      deps: as for rill_cc_test, without the fake device.
      tags: of both.
      **kwargs: as for rill_cc_test.
    """
    cases = name + "_cases"
    native.cc_library(
        name = cases,
        testonly = True,
        srcs = srcs,
        features = ["layering_check"],
        visibility = ["//visibility:private"],
        deps = deps + [
            "//device/testing:device_under_test",
            "@com_google_googletest//:gtest",
        ],
        alwayslink = True,
    )
    rill_cc_test(
        name = name,
        tags = tags + ["fake-device"],
        deps = [
            ":" + cases,
            "//device/testing:fake_device_under_test",
        ],
        **kwargs
    )
    rill_cc_test(
        name = name[:-len("_test")] + "_cuda_test",
        tags = tags + ["requires-gpu"],
        target_compatible_with = requires_cuda(),
        deps = [
            ":" + cases,
            "//cuda",
            "//device/cuda:cuda_device_under_test",
        ],
        **kwargs
    )
