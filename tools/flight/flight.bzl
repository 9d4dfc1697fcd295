"""requires_flight: targets that are skipped without --config=flight."""

# What Bazel says of an Arrow Flight target that is built by name without Arrow.
FLIGHT_IS_OFF = "Arrow Flight is off; add --repo_env=RILL_FLIGHT=hermetic"

def requires_flight():
    """For target_compatible_with: wildcards skip the target without Arrow Flight."""
    return select({
        str(Label("//tools/flight:enabled")): [],
        "//conditions:default": [str(Label("//tools/flight:" + FLIGHT_IS_OFF))],
    })
