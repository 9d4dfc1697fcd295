"""The macros that every package's BUILD file uses instead of cc_*.

They add what is the same everywhere and nothing that a reader of a BUILD file
must know: headers are included as "rill/<package>/<file>.h", a target is
private unless it says otherwise, tests are small and have gtest's main.
Warnings are not set here but in .bazelrc, so that they are never errors in
somebody else's build.
"""

_GTEST = "@com_google_googletest//:gtest"
_GTEST_MAIN = "@com_google_googletest//:gtest_main"
_BENCHMARK = "@com_github_google_benchmark//:benchmark"
_BENCHMARK_MAIN = "@com_github_google_benchmark//:benchmark_main"

# An older C++ is refused with a sentence.
_CXX20 = str(Label("//tools:cxx20"))

# Include what you use; acts under clang (--config=clang), gcc ignores it.
_FEATURES = ["layering_check"]

def _with(deps, labels):
    """`deps` and those of `labels` that are not there yet."""
    known = deps if type(deps) == "list" else []  # A select cannot be read.
    return deps + [label for label in labels if label not in known]

# Headers that g++ parses once for all sources of this repository: of libraries
# and programs, of tests, and of all that depends on LibTorch. Projects outside
# do without.
_LIBRARY_HEADERS = "//tools:library_headers"
_TEST_HEADERS = "//testing:test_headers"
_TORCH_HEADERS = "//tools/torch:torch_headers"
_TORCH = "@local_torch//:torch"

def _parsed(headers, deps, copts, compatible_with = None):
    """`deps` and `copts` with `headers`, or with those of LibTorch."""
    if native.repository_name() != "@":
        return dict(deps = deps, copts = copts)

    # In programs to copy a trainer's header has LibTorch's for those around it.
    is_around = compatible_with != None and native.package_name().startswith("examples/torch_")
    if is_around or type(deps) == "list" and _TORCH in deps:
        headers = _TORCH_HEADERS
    return dict(
        deps = deps + [headers],
        copts = copts + ["@$(BINDIR)/%s.options" % headers[2:].replace(":", "/")],
    )

# How headers get their path; the slash makes it relative to the repository.
_PREFIX = {
    "include_prefix": "rill",
    "strip_include_prefix": "/",
}

def rill_cc_library(
        name,
        srcs = [],
        simd_srcs = [],
        deps = [],
        features = [],
        copts = [],
        visibility = ["//visibility:private"],
        **kwargs):
    """A cc_library whose headers are included as "rill/<package>/<header>".

    Args:
      name: the header's stem, or the package's name for its bundle.
      srcs: sources.
      simd_srcs: sources that Highway compiles once for each instruction set.
        They say `#define HWY_TARGET_INCLUDE "rill/<package>/<name>.cc"` and
        so are included like headers.
      deps: other targets.
      features: more of cc_library's features.
      copts: more options for the compiler.
      visibility: private unless given.
      **kwargs: as for cc_library.
    """
    if simd_srcs:
        native.cc_library(
            name = name + "_simd",
            hdrs = simd_srcs,
            features = ["-parse_headers"],
            visibility = ["//visibility:private"],
            **_PREFIX
        )
        deps = deps + [":" + name + "_simd"]

        # Vectors of SVE have no size, so kernels could keep none in a struct:
        # ARM's processors take NEON.
        kwargs = dict(kwargs, local_defines = ["HWY_DISABLED_TARGETS=HWY_ALL_SVE"])
    is_for_tests = kwargs.get("testonly", False) and _GTEST in deps
    if srcs + simd_srcs:
        parsed = _parsed(_TEST_HEADERS if is_for_tests else _LIBRARY_HEADERS, deps + [_CXX20], copts, kwargs.get("target_compatible_with"))
    else:
        parsed = dict(deps = deps + [_CXX20], copts = copts)
    native.cc_library(
        name = name,
        srcs = srcs + simd_srcs,
        features = _FEATURES + features,
        visibility = visibility,
        **dict(dict(kwargs, **_PREFIX), **parsed)
    )

def rill_cc_binary(name, deps = [], copts = [], features = [], visibility = ["//visibility:private"], **kwargs):
    """A cc_binary; private unless it says otherwise."""
    native.cc_binary(
        name = name,
        features = _FEATURES + features,
        visibility = visibility,
        **dict(kwargs, **_parsed(_LIBRARY_HEADERS, deps, copts, kwargs.get("target_compatible_with")))
    )

# Tests of one source, compiled as one: more would be compiled by one processor
# while the others have nothing to do.
_JOINED_SOURCES = 6

# Of a test that rill_joined_tests takes, besides the tag that names its program.
_JOINED = ["joined", "manual"]
_JOINED_PROGRAMS = {
    "tests": [],
    "threads_tests": ["threads"],
    "torch_tests": ["requires-torch"],
}

def rill_cc_test(
        name,
        deps = [],
        size = "small",
        features = [],
        copts = [],
        main = True,
        tags = [],
        alone = False,
        **kwargs):
    """A cc_test with gtest's main.

    In this repository a small test that wants nothing special is built and run
    by rill_joined_tests, and by itself only where it is named.

    Args:
      name: <stem>_test.
      deps: what is tested; GoogleTest and GoogleMock come with the macro.
      size: small by default. A bigger one is a claim about time and memory.
      features: more of cc_test's features.
      copts: more options for the compiler.
      main: False where the test's sources have a main of their own.
      tags: as for cc_test.
      alone: True where the test wants a program of its own, for what else would
        be in its process.
      **kwargs: as for cc_test.
    """
    joins = main and size == "small" and not alone and not features and not copts and \
            type(deps) == "list" and tags in _JOINED_PROGRAMS.values() and kwargs.keys() == ["srcs"] and \
            native.repository_name() == "@"
    deps = _with(deps, [_GTEST, _GTEST_MAIN] if main else [_GTEST])
    native.cc_test(
        name = name,
        size = size,
        features = _FEATURES + features,
        tags = tags + (_JOINED if joins else []),
        visibility = ["//visibility:private"],
        **dict(kwargs, **_parsed(_TEST_HEADERS, deps, copts, kwargs.get("target_compatible_with")))
    )

def rill_joined_tests():
    """The package's small tests in few sources and one program: the last line of its BUILD file.

    Half of a test's time to compile goes into what the tests of a package share.
    Those of the tag "threads", which is what TSan looks at, are a program of
    their own:

        bazel test //samplers/units:tests //samplers/units:threads_tests
    """
    if native.repository_name() != "@":
        return
    for name, tags in _JOINED_PROGRAMS.items():
        srcs, deps = [], {}
        for rule in native.existing_rules().values():
            if rule["kind"] == "cc_test" and sorted(rule["tags"]) == sorted(tags + _JOINED):
                srcs += list(rule["srcs"])
                deps.update({dep: None for dep in rule["deps"]})
        sources = []
        for start in range(0, len(srcs), _JOINED_SOURCES):
            sources.append("%s_%d.cc" % (name, start // _JOINED_SOURCES))
            native.genrule(
                name = sources[-1][:-3],
                testonly = True,
                srcs = srcs[start:start + _JOINED_SOURCES],
                outs = [sources[-1]],
                cmd = "python3 $(location //tools:join_tests.py) $(SRCS) >$@",
                tools = ["//tools:join_tests.py"],
                visibility = ["//visibility:private"],
            )
        if sources:
            native.cc_test(
                name = name,
                size = "medium",
                srcs = sources,
                features = _FEATURES,
                tags = tags,
                deps = deps.keys(),
                copts = _parsed(_TEST_HEADERS, [_TORCH] if _TORCH_HEADERS in deps else [], [])["copts"],
                visibility = ["//visibility:private"],
            )

def rill_cc_benchmark(name, srcs, deps = [], copts = [], smoke = True, smoke_args = [], tags = [], **kwargs):
    """A benchmark program, and a test that it still runs.

    `bazel run --config=opt //pkg:<name>` measures. <name>_smoke runs every
    benchmark once, unoptimised, as a part of the suite.

    Args:
      name: <stem>_benchmark.
      srcs: its sources.
      deps: what is measured; Google Benchmark and its main come with the macro.
      copts: more options for the compiler.
      smoke: False if one round of it is too slow for a test of size small.
      smoke_args: more flags for the smoke run, e.g. a --benchmark_filter.
      tags: more tags.
      **kwargs: as for cc_library.
    """
    objects = name + "_objects"
    native.cc_library(
        name = objects,
        testonly = True,
        srcs = srcs,
        features = _FEATURES,
        tags = ["benchmark"] + tags,
        visibility = ["//visibility:private"],
        alwayslink = True,
        **dict(kwargs, **_parsed(_LIBRARY_HEADERS, _with(deps, [_BENCHMARK, _BENCHMARK_MAIN]), copts))
    )
    native.cc_binary(
        name = name,
        testonly = True,
        tags = ["benchmark"] + tags,
        visibility = ["//visibility:private"],
        deps = [":" + objects],
    )
    if smoke:
        native.cc_test(
            name = name + "_smoke",
            size = "small",
            args = ["--benchmark_min_time=1x"] + smoke_args,
            tags = ["benchmark"] + tags,
            visibility = ["//visibility:private"],
            deps = [":" + objects],
        )

def _with_own(name, deps):
    """`deps` with ":name" where the order puts it, if they do not have it."""
    own = ":" + name
    if type(deps) != "list":
        return [own] + deps  # A select cannot be read.
    if own in deps:
        return deps
    before = 0
    for dep in deps:
        if not dep.startswith(":") or dep > own:
            break
        before += 1
    return deps[:before] + [own] + deps[before:]

def rill_cc_component(name, **kwargs):
    """A library with its test, its benchmark or both.

    This makes the rill_cc_library "ring", the rill_cc_test "ring_test" of
    ring_test.cc and the rill_cc_benchmark "ring_benchmark" of ring_benchmark.cc,
    which both depend on the library:

        rill_cc_component(
            name = "ring",
            srcs = ["ring.cc"],
            hdrs = ["ring.h"],
            deps = ["//slots:slot"],
            test_tags = ["threads"],
            test_deps = ["//testing:status_matchers"],
            benchmark_deps = [],
        )

    Args:
      name: as for rill_cc_library.
      **kwargs: test_X is the argument X of the rill_cc_test, benchmark_X that of
        the rill_cc_benchmark; each of the two is made if one of its arguments is
        given, be it an empty test_deps. All others are the library's.
    """
    parts = {"test": rill_cc_test, "benchmark": rill_cc_benchmark}
    library = dict(kwargs)
    for part, rule in parts.items():
        args = {}
        for key in kwargs:
            if key.startswith(part + "_"):
                args[key[len(part) + 1:]] = library.pop(key)
        if args:
            args["deps"] = _with_own(name, args.get("deps", []))
            args.setdefault("srcs", ["%s_%s.cc" % (name, part)])
            rule(name = "%s_%s" % (name, part), **args)
    rill_cc_library(name = name, **library)
