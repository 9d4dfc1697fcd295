"""requires_mpi and rill_mpi_test: targets that are skipped without --config=mpi."""

load("@local_mpi//:is_there.bzl", _MPIRUN = "MPIRUN")
load("//tools:rill.bzl", "rill_cc_binary")

# What starts a job, for run_ranks.sh; "" without MPI.
MPIRUN = _MPIRUN

# What Bazel says of an MPI target that is built by name without MPI.
MPI_IS_OFF = "MPI is off; add --repo_env=RILL_MPI=system"

def requires_mpi():
    """For target_compatible_with: wildcards skip the target without MPI."""
    return select({
        str(Label("//tools/mpi:enabled")): [],
        "//conditions:default": [str(Label("//tools/mpi:" + MPI_IS_OFF))],
    })

def rill_mpi_test(name, srcs, deps, ranks, **kwargs):
    """A program with a main of its own, run as an MPI job of this machine.

    Args:
      name: <stem>_test.
      srcs: its sources.
      deps: what is tested.
      ranks: processes of the job.
      **kwargs: as for sh_test.
    """
    rill_cc_binary(
        name = name + "_program",
        testonly = True,
        srcs = srcs,
        target_compatible_with = requires_mpi(),
        deps = deps,
    )
    native.sh_test(
        name = name,
        srcs = [str(Label("//tools/mpi:run_ranks.sh"))],
        args = [MPIRUN, str(ranks), "$(location :%s_program)" % name],
        data = [":%s_program" % name],
        target_compatible_with = requires_mpi(),
        **kwargs
    )
