"""requires_torch: targets that are skipped without --config=torch."""

# What Bazel says of a LibTorch target that is built by name without LibTorch.
TORCH_IS_OFF = "LibTorch is off; add --repo_env=RILL_TORCH=hermetic"

def requires_torch():
    """For target_compatible_with: wildcards skip the target without LibTorch."""
    return select({
        str(Label("//tools/torch:enabled")): [],
        "//conditions:default": [str(Label("//tools/torch:" + TORCH_IS_OFF))],
    })
