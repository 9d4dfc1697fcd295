"""@local_mujoco: MuJoCo and Gymnasium's models, for --config=mujoco.

RILL_MUJOCO (set with --repo_env) says whether there is MuJoCo:
  unset, "" or "none"  an empty stand-in; nothing of MuJoCo is looked for.
  "hermetic"           the pinned wheels of requirements.txt, through pip.
"""

load("//tools:pip_wheels.bzl", "unpack_wheels")

_TARGETS = ["gymnasium_models", "mujoco"]

# What MuJoCo targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])
""" + "".join(["""
cc_library(name = "%s")
""" % target for target in _TARGETS])

_ALIASES = """
package(default_visibility = ["//visibility:public"])
""" + "".join(["""
alias(
    name = "%s",
    actual = "@{wheels}//:%s",
)
""" % (target, target) for target in _TARGETS])

_WHEELS = """
package(default_visibility = ["//visibility:public"])

cc_import(
    name = "libmujoco",
    shared_library = "{library}",
)

# #include "mujoco/mujoco.h"
cc_library(
    name = "mujoco",
    hdrs = glob(["include/mujoco/*.h"]),
    includes = ["include"],
    deps = [":libmujoco"],
)

# #include "gymnasium_models/models.h"
cc_library(
    name = "gymnasium_models",
    hdrs = ["models/gymnasium_models/models.h"],
    includes = ["models"],
)
"""

# The constant in models.h: the file of Gymnasium's class of that name.
_MODELS = {
    "kAnt": "ant",
    "kHalfCheetah": "half_cheetah",
    "kHopper": "hopper",
    "kHumanoid": "humanoid",
    "kInvertedPendulum": "inverted_pendulum",
    "kWalker2d": "walker2d_v5",
}

def _wheels_impl(ctx):
    unpack_wheels(
        ctx,
        what = "MuJoCo",
        flag = "RILL_MUJOCO=hermetic",
        kept = "mujoco_wheels",
        # The library is the same for every Python; one of them is named here.
        pip_options = [
            "--implementation=cp",
            "--python-version=3.11",
            "--abi=cp311",
            "--abi=none",
            "--platform=manylinux_2_28_x86_64",
            "--platform=any",
        ],
    )
    ctx.symlink("unpacked/mujoco/include", "include")
    libraries = [
        path.basename
        for path in ctx.path("unpacked/mujoco").readdir()
        if path.basename.startswith("libmujoco.so.")
    ]
    if len(libraries) != 1:
        fail("the wheel of mujoco-core holds %d files libmujoco.so.*, want one" % len(libraries))
    ctx.symlink("unpacked/mujoco/" + libraries[0], libraries[0])
    models = "#pragma once\n\nnamespace gymnasium_models {\n"
    for name, file in _MODELS.items():
        text = ctx.read("unpacked/gymnasium/envs/mujoco/assets/%s.xml" % file)
        models += "inline constexpr char %s[] = R\"MJCF(%s)MJCF\";\n" % (name, text)
    ctx.file("models/gymnasium_models/models.h", models + "}  // namespace gymnasium_models\n")
    ctx.file("BUILD", _WHEELS.format(library = libraries[0]))

_wheels = repository_rule(
    implementation = _wheels_impl,
    attrs = {"requirements": attr.label(default = Label("//tools/mujoco:requirements.txt"))},
)

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_MUJOCO", "")
    if wanted not in ["", "none", "hermetic"]:
        fail("RILL_MUJOCO=%s: want none or hermetic" % wanted)
    is_there = wanted == "hermetic"
    ctx.file("is_there.bzl", "IS_THERE = %s\n" % is_there)
    ctx.file("BUILD", _ALIASES.format(wheels = ctx.attr.wheels) if is_there else _STUB)

_configure = repository_rule(
    implementation = _configure_impl,
    attrs = {"wheels": attr.string()},
    environ = ["RILL_MUJOCO"],
)

def mujoco_repositories():
    """@local_mujoco and, beside it, the wheels, which are fetched when first used."""
    _wheels(name = "local_mujoco_wheels")
    _configure(name = "local_mujoco", wheels = "local_mujoco_wheels")
