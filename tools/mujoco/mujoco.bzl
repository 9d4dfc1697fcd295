"""requires_mujoco: targets that are skipped without --config=mujoco."""

# What Bazel says of a MuJoCo target that is built by name without MuJoCo.
MUJOCO_IS_OFF = "MuJoCo is off; add --repo_env=RILL_MUJOCO=hermetic"

def requires_mujoco():
    """For target_compatible_with: wildcards skip the target without MuJoCo."""
    return select({
        str(Label("//tools/mujoco:enabled")): [],
        "//conditions:default": [str(Label("//tools/mujoco:" + MUJOCO_IS_OFF))],
    })
