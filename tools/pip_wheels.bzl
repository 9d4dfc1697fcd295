"""Wheels of pinned requirements, for repository rules."""

def _download(ctx, python, pip_options, options):
    return ctx.execute([
        python,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "-r",
        ctx.path(ctx.attr.requirements),
    ] + pip_options + options, timeout = 1200)

# python3 -c _UNPACK WHEEL FOLDER PATTERN...
_UNPACK = """
import fnmatch, os, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for info in wheel.infolist():
        if any(fnmatch.fnmatchcase(info.filename, pattern) for pattern in sys.argv[3:]):
            path = wheel.extract(info, sys.argv[2])
            if info.external_attr >> 16:
                os.chmod(path, info.external_attr >> 16)
"""

def unpack_wheels(ctx, what, flag, kept, pip_options, instead = "", members = ["*"]):
    """Unpacks the wheels of ctx.attr.requirements below "unpacked".

    The wheels are kept for the next output tree; what lies there is taken by its
    sha256, as what is fetched is.

    Args:
      ctx: of a repository rule with the attribute `requirements`.
      what: what the wheels are, for messages.
      flag: the setting that asked for it, for messages.
      kept: the folder below the user's cache that keeps them.
      pip_options: the platforms and Python that pip chooses wheels for.
      instead: what to do where pip cannot, ", or ...".
      members: patterns of the files that are unpacked.
    """
    python = ctx.which("python3")
    if not python:
        fail("%s fetches %s with pip, and there is no python3 on " % (flag, what) +
             "PATH: install python3 and python3-pip" + instead)
    home = ctx.os.environ.get("XDG_CACHE_HOME") or (ctx.os.environ.get("HOME", "/tmp") + "/.cache")
    kept = home + "/rill/" + kept
    from_kept = ["--no-index", "--find-links=" + kept, "-d", "wheels"]
    done = _download(ctx, python, pip_options, from_kept)
    if done.return_code:
        done = _download(ctx, python, pip_options, ["-d", kept])
        if not done.return_code:
            done = _download(ctx, python, pip_options, from_kept)
    if done.return_code:
        fail("pip could not fetch %s (exit status %d); it needs python3-pip and a network%s:\n" %
             (what, done.return_code, instead) + done.stdout + done.stderr)
    for wheel in ctx.path("wheels").readdir():
        done = ctx.execute([python, "-c", _UNPACK, wheel, "unpacked"] + members)
        if done.return_code:
            fail("%s does not unpack:\n" % wheel + done.stderr)
    ctx.delete("wheels")
