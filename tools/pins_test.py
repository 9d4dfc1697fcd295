#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MODULE.bazel, which can load nothing, repeats what tools/pins.bzl says.

usage: pins_test.py PINS_BZL MODULE_BAZEL

testing/consumer/MODULE.bazel, beside the real file, repeats the overrides.
"""
import ast
import base64
import os
import sys


def calls(tree, function):
    """The keyword arguments of each top-level call of `function`."""
    for node in tree.body:
        call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        if isinstance(call, ast.Call) and call.func.id == function:
            yield {k.arg: ast.literal_eval(k.value) for k in call.keywords}


def parse(path):
    with open(path, encoding="utf-8") as f:
        return ast.parse(f.read())


def overrides(module):
    """{module: override}, with the patches' file names only."""
    found = {}
    for override in calls(module, "archive_override"):
        patches = [p.split(":")[-1] for p in override.get("patches", [])]
        found[override["module_name"]] = dict(override, patches=patches)
    return found


def main(pins_path, module_path):
    pins = ast.literal_eval(next(n.value for n in parse(pins_path).body
                                 if isinstance(n, ast.Assign)))
    module = parse(module_path)
    problems = []

    def want_equal(what, got, want):
        if got != want:
            problems.append("%s: MODULE.bazel has %s, pins.bzl %s" % (what, got, want))

    def url(pin):
        return pin.get("url", "file:///" + pin["debian"])

    names = [url(pin).rsplit("/", 1)[1] for pin in pins.values()]
    if len(set(names)) != len(names):
        problems.append("two pins share a file name in a --distdir: %s" % sorted(names))

    repo_of = {}
    for dep in calls(module, "bazel_dep"):
        repo = dep.get("repo_name", dep["name"])
        repo_of[dep["name"]] = repo
        # Bazel 7 brings newer rules of its own; 4.2.3 cannot load them.
        if repo not in pins or repo in ("bazel_skylib", "rules_cc"):
            continue
        # The registry's repackagings of one version end in .bcr.N.
        want_equal(repo + " version", dep["version"].split(".bcr.")[0], pins[repo]["version"])

    compared = 0
    for override in calls(module, "archive_override"):
        repo = repo_of[override["module_name"]]
        pin = pins[repo]
        digest = base64.b64encode(bytes.fromhex(pin["sha256"])).decode()
        want_equal(repo + " url", override["urls"], [url(pin)])
        want_equal(repo + " sha256", override["integrity"], "sha256-" + digest)
        want_equal(repo + " strip_prefix", override["strip_prefix"], pin["strip_prefix"])
        compared += 1
    if not compared:
        problems.append("MODULE.bazel holds no archive_override")
    root = os.path.dirname(os.path.realpath(module_path))
    consumer = os.path.join(root, "testing", "consumer", "MODULE.bazel")
    if overrides(parse(consumer)) != overrides(module):
        problems.append("testing/consumer/MODULE.bazel: its archive_overrides are not Rill's")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
