"""rill_cc_library_for_python: the parts of the extension rill._rill."""

load("//tools:rill.bzl", "rill_cc_library")
load("//tools/python:python.bzl", "requires_python")

def rill_cc_library_for_python(**library):
    """A rill_cc_library that is skipped without Python, and exports nothing.

    Args:
      **library: as for rill_cc_library.
    """
    rill_cc_library(
        copts = [
            "-fvisibility=hidden",
            # Lambdas in Abseil's hash tables capture what is hidden.
            "-Wno-attributes",
        ],
        target_compatible_with = requires_python(),
        **library
    )
