"""requires_onnx: targets that are skipped without --config=onnx."""

# What Bazel says of an ONNX Runtime target that is built by name without ONNX Runtime.
ONNX_IS_OFF = "ONNX Runtime is off; add --repo_env=RILL_ONNX=hermetic"

def requires_onnx():
    """For target_compatible_with: wildcards skip the target without ONNX Runtime."""
    return select({
        str(Label("//tools/onnx:enabled")): [],
        "//conditions:default": [str(Label("//tools/onnx:" + ONNX_IS_OFF))],
    })
