"""@local_onnx: ONNX Runtime, for --config=onnx.

RILL_ONNX (set with --repo_env) picks it, and so whether there is ONNX Runtime:
  unset, "" or "none"  an empty stand-in; nothing of ONNX Runtime is looked for.
  "hermetic"           the library of the pinned wheel of requirements.txt,
                       through pip, and the pinned header of Debian's source.
  a path               an unpacked release: include/ and lib/.
"""

load("//tools:debian_archive.bzl", "debian_urls")
load("//tools:pip_wheels.bzl", "unpack_wheels")

# The wheel holds no header. The C interface is stable: a library serves the
# headers of its own version and of all before. Debian's source without what its
# packagers left out ("+dfsg": models, none of the code).
_SOURCE = struct(
    path = "pool/main/o/onnxruntime/onnxruntime_1.21.0+dfsg.orig.tar.xz",
    sha256 = "32df1f82bd6b07b18372c0f387133214905cbde7a586b3ad83f0ed0075f80273",
    header = "onnxruntime-1.21.0/include/onnxruntime/core/session/onnxruntime_c_api.h",
)

# What ONNX Runtime targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "onnxruntime")
"""

_ALIAS = """
package(default_visibility = ["//visibility:public"])

alias(
    name = "onnxruntime",
    actual = "@{wheels}//:onnxruntime",
)
"""

# #include "onnxruntime_c_api.h"
_HEADERS = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "onnxruntime",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
"""

_WHEELS = _HEADERS + """
    deps = [":library"],
)

cc_import(
    name = "library",
    shared_library = "libonnxruntime.so.1",
)
"""

# python3 -c _EXTRACT ARCHIVE MEMBER FILE: reads no further than the member.
_EXTRACT = """
import sys, tarfile
with tarfile.open(sys.argv[1], "r|xz") as archive:
    for member in archive:
        if member.name == sys.argv[2]:
            with open(sys.argv[3], "wb") as file:
                file.write(archive.extractfile(member).read())
            break
    else:
        sys.exit("no " + sys.argv[2])
"""

def _fetch_header(ctx):
    instead = "; or set RILL_ONNX to the folder of an installed ONNX Runtime"
    done = ctx.download(
        url = debian_urls(ctx, _SOURCE.path),
        output = "source.tar.xz",
        sha256 = _SOURCE.sha256,
        allow_fail = True,
    )
    if not done.success:
        fail("RILL_ONNX=hermetic: no --distdir has %s, and no archive that apt is set up with" %
             _SOURCE.path.split("/")[-1] + instead)
    ctx.file("include/onnxruntime_c_api.h")
    done = ctx.execute([
        ctx.which("python3"),
        "-c",
        _EXTRACT,
        "source.tar.xz",
        _SOURCE.header,
        "include/onnxruntime_c_api.h",
    ])
    if done.return_code:
        fail("RILL_ONNX=hermetic: the source does not unpack: " + done.stderr + instead)
    ctx.delete("source.tar.xz")

def _wheels_impl(ctx):
    unpack_wheels(
        ctx,
        what = "ONNX Runtime",
        flag = "RILL_ONNX=hermetic",
        kept = "onnx_wheels",
        # The library is the same for every Python; one of them is named here.
        pip_options = [
            "--implementation=cp",
            "--python-version=3.11",
            "--abi=cp311",
            "--platform=manylinux_2_28_x86_64",
            "--platform=manylinux_2_27_x86_64",
        ],
        instead = ", or set RILL_ONNX to the folder of an installed ONNX Runtime",
        members = ["onnxruntime/capi/libonnxruntime.so.*"],
    )
    libraries = ctx.path("unpacked/onnxruntime/capi").readdir()
    if len(libraries) != 1:
        fail("the wheel of onnxruntime holds %d files libonnxruntime.so.*, want one" % len(libraries))
    ctx.symlink(libraries[0], "libonnxruntime.so.1")  # Its soname.
    _fetch_header(ctx)
    ctx.file("BUILD", _WHEELS)

_wheels = repository_rule(
    implementation = _wheels_impl,
    attrs = {"requirements": attr.label(default = Label("//tools/onnx:requirements.txt"))},
)

# The library by its absolute path.
_INSTALLED = _HEADERS + """
    linkopts = {linkopts},
)
"""

def _link_installed(ctx, path):
    for wanted in ["include/onnxruntime_c_api.h", "lib/libonnxruntime.so"]:
        if not ctx.path(path + "/" + wanted).exists:
            fail("RILL_ONNX=%s holds no %s: want the folder of an unpacked release of ONNX Runtime" % (path, wanted))
    lib = path + "/lib"
    ctx.symlink(path + "/include", "include")
    ctx.file("BUILD", _INSTALLED.format(
        linkopts = ["-L" + lib, "-Wl,-rpath," + lib, "-l:libonnxruntime.so"],
    ))

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_ONNX", "")
    is_there = wanted not in ["", "none"]
    if not is_there:
        ctx.file("BUILD", _STUB)
    elif wanted == "hermetic":
        ctx.file("BUILD", _ALIAS.format(wheels = ctx.attr.wheels))
    elif wanted.startswith("/"):
        _link_installed(ctx, wanted)
    else:
        fail("RILL_ONNX=%s: want none, hermetic or the absolute path of an ONNX Runtime" % wanted)
    ctx.file("is_there.bzl", "IS_THERE = %s\n" % is_there)

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {"wheels": attr.string()},
    environ = ["RILL_ONNX"],
)

def onnx_repositories():
    """@local_onnx and, beside it, the wheel, which is fetched when first used."""
    _wheels(name = "local_onnx_wheels")
    _configure(name = "local_onnx", wheels = "local_onnx_wheels")
