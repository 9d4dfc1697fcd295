"""@local_mpi: the system's MPI, for --config=mpi.

RILL_MPI (set with --repo_env) picks it, and so whether there is MPI:
  unset, "" or "none"  an empty stand-in; nothing of MPI is looked for.
  "system"             mpicc and mpirun of the PATH: Debian's libopenmpi-dev and
                       openmpi-bin, or libmpich-dev and mpich.
  "openmpi", "mpich"   mpicc and mpirun with that behind a dot: one of both that
                       Debian has beside each other.
  a path               an installed MPI: bin/mpicc and bin/mpirun.
"""

# What MPI targets want of it exists only while they are off.
_STUB = """
package(default_visibility = ["//visibility:public"])

cc_library(name = "mpi")
"""

# #include <mpi.h>, the C interface without that of C++.
_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "mpi",
    hdrs = glob(["include_*/**"]),
    defines = ["MPICH_SKIP_MPICXX", "OMPI_SKIP_MPICXX"],
    includes = {includes},
    linkopts = {linkopts},
)
"""

# Behind the names of programs in the PATH.
_SUFFIXES = {"system": "", "openmpi": ".openmpi", "mpich": ".mpich"}

def _program(ctx, wanted, name):
    if wanted not in _SUFFIXES:
        path = ctx.path(wanted + "/bin/" + name)
        if not path.exists:
            fail("RILL_MPI=%s holds no bin/%s: want the folder of an installed MPI" % (wanted, name))
        return path
    path = ctx.which(name + _SUFFIXES[wanted])
    if not path:
        fail("RILL_MPI=%s: no %s in the PATH; apt-get install libopenmpi-dev openmpi-bin, " %
             (wanted, name + _SUFFIXES[wanted]) +
             "or libmpich-dev mpich, or set RILL_MPI to the folder of an installed MPI")
    return path

def _link_mpi(ctx, wanted):
    """Makes the target from what mpicc calls the compiler with."""
    mpicc = _program(ctx, wanted, "mpicc")
    done = ctx.execute([mpicc, "-show"])
    if done.return_code:
        fail("RILL_MPI=%s: %s -show: %s" % (wanted, mpicc, done.stderr))
    folders, linkopts = [], []
    for word in done.stdout.strip().split(" "):
        if word.startswith("-I"):
            folders.append(word[2:])
        elif word.startswith("-L"):
            linkopts += [word, "-Wl,-rpath," + word[2:]]
        elif word.startswith("-l"):
            linkopts.append(word)

    # Where a wrapper names no folder, the header is the compiler's to find.
    includes = []
    for folder in folders:
        if ctx.path(folder).exists:
            includes.append("include_%d" % len(includes))
            ctx.symlink(folder, includes[-1])
    ctx.file("BUILD", _BUILD.format(
        includes = includes,
        linkopts = linkopts,
    ))
    return _program(ctx, wanted, "mpirun")

def _configure_impl(ctx):
    wanted = ctx.os.environ.get("RILL_MPI", "")
    is_there = wanted not in ["", "none"]
    mpirun = ""
    if not is_there:
        ctx.file("BUILD", _STUB)
    elif wanted in _SUFFIXES or wanted.startswith("/"):
        mpirun = _link_mpi(ctx, wanted)
    else:
        fail("RILL_MPI=%s: want none, system, openmpi, mpich or the absolute path of an MPI" % wanted)
    ctx.file("is_there.bzl", "IS_THERE = %s\n\nMPIRUN = \"%s\"\n" % (is_there, mpirun))

_configure = repository_rule(
    implementation = _configure_impl,
    environ = ["RILL_MPI"],
)

def mpi_repositories():
    """@local_mpi."""
    _configure(name = "local_mpi")
