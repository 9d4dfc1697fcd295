"""The third-party sources: one entry each, and the only place that names them.

A plain dict of plain strings, so that Starlark loads it (deps.bzl) and Python
reads it as a literal (fetch_distdir, pins_test). MODULE.bazel cannot load
anything, so it repeats some entries and pins_test compares them.

  version       upstream's version.
  url           upstream's archive; not there where upstream's bytes cannot be
                made from Debian's. The last part of the URL, or else of
                `debian`, is unique: it is the file's name in a --distdir.
  sha256        the archive's.
  strip_prefix  the archive's top folder.
  build_file    our BUILD file, where upstream has none that Bazel 4.2.3 loads.
  patch         our patch against upstream, applied with -p1.
  debian        where Debian's archive (pool/main/...) keeps the same source;
                apt's configuration says on which host.
  repack        how Debian's file becomes upstream's, byte for byte:
                "" it is the same file; "gzip" it was compressed again with xz;
                "prefix OLD" its top folder was renamed to OLD.
"""

PINS = {
    "bazel_skylib": {
        "version": "1.0.3",
        "url": "https://github.com/bazelbuild/bazel-skylib/archive/1.0.3.tar.gz",
        "sha256": "7ac0fa88c0c4ad6f5b9ffb5e09ef81e235492c873659e6bb99efb89d11246bcb",
        "strip_prefix": "bazel-skylib-1.0.3",
        "debian": "pool/main/b/bazel-skylib/bazel-skylib_1.0.3.orig.tar.xz",
        "repack": "gzip",
    },
    "com_github_google_benchmark": {
        "version": "1.9.1",
        "url": "https://github.com/google/benchmark/archive/refs/tags/v1.9.1.tar.gz",
        "sha256": "32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981",
        "strip_prefix": "benchmark-1.9.1",
        "build_file": "//tools/third_party:benchmark.BUILD",
        "debian": "pool/main/b/benchmark/benchmark_1.9.1.orig.tar.gz",
        "repack": "",
    },
    "com_google_absl": {
        "version": "20240722.0",
        "url": "https://github.com/abseil/abseil-cpp/releases/download/20240722.0/abseil-cpp-20240722.0.tar.gz",
        "sha256": "f50e5ac311a81382da7fa75b97310e4b9006474f9560ac46f54a9967f07d4ae3",
        "strip_prefix": "abseil-cpp-20240722.0",
        "patch": "//tools/third_party:abseil_bazel4.patch",
        "debian": "pool/main/a/abseil/abseil_20240722.0.orig.tar.gz",
        "repack": "prefix abseil-20240722.0",
    },
    "com_google_googletest": {
        "version": "1.12.1",
        "url": "https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz",
        "sha256": "81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2",
        "strip_prefix": "googletest-release-1.12.1",
        "debian": "pool/main/g/googletest/googletest_1.12.1.orig.tar.gz",
        "repack": "",
    },
    "eigen": {
        "version": "3.4.0",
        "url": "https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.bz2",
        "sha256": "b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626",
        "strip_prefix": "eigen-3.4.0",
        "build_file": "//tools/third_party:eigen.BUILD",
        "debian": "pool/main/e/eigen3/eigen3_3.4.0.orig.tar.bz2",
        "repack": "",
    },
    "highway": {
        "version": "1.2.0",
        "url": "https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz",
        "sha256": "7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343",
        "strip_prefix": "highway-1.2.0",
        "build_file": "//tools/third_party:highway.BUILD",
        "debian": "pool/main/h/highway/highway_1.2.0.orig.tar.gz",
        "repack": "",
    },
    "nlohmann_json": {
        "version": "3.11.3",
        "url": "https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz",
        "sha256": "0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406",
        "strip_prefix": "json-3.11.3",
        "debian": "pool/main/n/nlohmann-json3/nlohmann-json3_3.11.3.orig.tar.gz",
        "repack": "",
    },
    # Debian's own archive: upstream's bytes cannot be had from Debian, which
    # left out prebuilt documentation ("+dfsg"). The library is untouched.
    "random123": {
        "version": "1.14.0",
        "sha256": "0ed9bf1de7732303f35529ff9b42b0ab84e1fbeaad8ba97768440d8e2b109e87",
        "strip_prefix": "random123-1.14.0",
        "build_file": "//tools/third_party:random123.BUILD",
        "debian": "pool/main/libr/librandom123/librandom123_1.14.0+dfsg.orig.tar.xz",
        "repack": "",
    },
    "rules_cc": {
        "version": "0.0.4",
        "url": "https://github.com/bazelbuild/rules_cc/archive/refs/tags/0.0.4.tar.gz",
        "sha256": "af6cc82d87db94585bceeda2561cb8a9d55ad435318ccb4ddfee18a43580fb5d",
        "strip_prefix": "rules_cc-0.0.4",
        "patch": "//tools/third_party:rules_cc_bazel4.patch",
        "debian": "pool/main/b/bazel-rules-cc/bazel-rules-cc_0.0.4.orig.tar.xz",
        "repack": "gzip",
    },
    # Debian's own archive, which has less in contrib/ than upstream's. The
    # library is untouched.
    "zlib": {
        "version": "1.3.1",
        "sha256": "60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb",
        "strip_prefix": "zlib-1.3.1",
        "build_file": "//tools/third_party:zlib.BUILD",
        "debian": "pool/main/z/zlib/zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
        "repack": "",
    },
    # Debian's own archive, which leaves out some files ("+dfsg"), none of those
    # that zstd.BUILD names.
    "zstd": {
        "version": "1.5.7",
        "sha256": "0c092ef267edce57ba7f3f2645c861f72eaf5e76273c6c3632869423464b90a5",
        "strip_prefix": "zstd-1.5.7",
        "build_file": "//tools/third_party:zstd.BUILD",
        "debian": "pool/main/libz/libzstd/libzstd_1.5.7+dfsg.orig.tar.xz",
        "repack": "",
    },
}
