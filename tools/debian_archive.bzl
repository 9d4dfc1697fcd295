"""Repositories of which only Debian's archive has the pinned bytes."""

def _sites(ctx):
    """The archives that apt is set up with; none on a machine without apt."""
    apt = ctx.which("apt-get")
    if apt == None:
        return []
    result = ctx.execute([apt, "indextargets", "--format", "$(SITE)", "Created-By: Packages"])
    return [site for site in result.stdout.split("\n") if site] if result.return_code == 0 else []

def debian_urls(ctx, path):
    """Where `path` of Debian's archive is; for ctx.download and its like."""

    # The last one is never there, but Bazel looks into a --distdir for its
    # file name first.
    return [site.rstrip("/") + "/" + path for site in _sites(ctx)] + ["file:///" + path]

def _debian_archive_impl(ctx):
    file_name = ctx.attr.path.split("/")[-1]
    done = ctx.download_and_extract(
        url = debian_urls(ctx, ctx.attr.path),
        sha256 = ctx.attr.sha256,
        stripPrefix = ctx.attr.strip_prefix,
        allow_fail = True,
    )
    if not done.success:
        fail(("%s: no --distdir has %s, and no archive that apt is set up with; run " +
              "Rill's tools/fetch_distdir DIR and build with --distdir=DIR") %
             (ctx.name, file_name))
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD.bazel", ctx.read(ctx.attr.build_file))

debian_archive = repository_rule(
    implementation = _debian_archive_impl,
    attrs = {
        "build_file": attr.label(mandatory = True),
        "path": attr.string(mandatory = True),
        "sha256": attr.string(mandatory = True),
        "strip_prefix": attr.string(mandatory = True),
    },
    doc = "Unpacks a file of Debian's archive (`path`: pool/main/...), from the host that apt names.",
)
