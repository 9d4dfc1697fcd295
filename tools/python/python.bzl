"""requires_python: targets that are skipped without --config=python."""

# What Bazel says of a Python target that is built by name without Python.
PYTHON_IS_OFF = "Python is off; add --repo_env=RILL_PYTHON=python3"

def requires_python():
    """For target_compatible_with: wildcards skip the target without Python."""
    return select({
        str(Label("//tools/python:enabled")): [],
        "//conditions:default": [str(Label("//tools/python:" + PYTHON_IS_OFF))],
    })
