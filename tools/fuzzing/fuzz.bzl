"""rill_fuzz_target: a parser under a fuzzer, and its corpus as a test."""

load("//tools:rill.bzl", "rill_cc_test")

def rill_fuzz_target(name, srcs, deps = [], corpus = None, **kwargs):
    """A fuzzer <name>, and a test <name>_replay that runs its corpus.

    `tools/fuzz //pkg:<name>` fuzzes; the fuzzer is built under --config=fuzz
    only. The replay is a part of the suite under every compiler and sanitizer.

    The source defines LLVMFuzzerTestOneInput and states promises with
    RILL_FUZZ_CHECK (//tools/fuzzing:fuzz_input). The corpus lies in
    testdata/fuzz/<name without _fuzz>/ and words for the fuzzer, if any, in
    testdata/fuzz/<name without _fuzz>.dict.

    Args:
      name: <stem>_fuzz.
      srcs: its source.
      deps: what it calls.
      corpus: files, all of one folder; by default the one above.
      **kwargs: as for cc_library.
    """
    if not name.endswith("_fuzz"):
        fail("rill_fuzz_target: want a name <stem>_fuzz, got " + name)
    folder = "testdata/fuzz/" + name[:-len("_fuzz")]
    objects = name + "_objects"
    native.cc_library(
        name = objects,
        testonly = True,
        srcs = srcs,
        features = ["layering_check"],
        visibility = ["//visibility:private"],
        deps = deps,
        alwayslink = True,
        **kwargs
    )
    native.cc_binary(
        name = name,
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["fuzz_target"],
        target_compatible_with = select({
            str(Label("//tools/fuzzing:enabled")): [],
            "//conditions:default": [str(Label("//tools/fuzzing:absent"))],
        }),
        visibility = ["//visibility:private"],
        deps = [":" + objects],
    )
    rill_cc_test(
        name = name + "_replay",
        args = [native.package_name() + "/" + folder],
        data = corpus or native.glob([folder + "/**"]),
        main = False,
        target_compatible_with = kwargs.get("target_compatible_with", []),
        deps = [
            ":" + objects,
            str(Label("//tools/fuzzing:replay")),
        ],
    )
