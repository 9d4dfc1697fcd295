# SPDX-License-Identifier: Apache-2.0
"""Which target has each header, as far as BUILD files say it without Bazel.

gcc does not look at layering_check, and clang's builds come late: so the lint
looks whether a target names in its deps who has the headers that it includes.
"""
import ast
import os
import re

from build_files import full, strings

INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:rill|absl)/[^"]+)"', re.M)

# Of Abseil's packages whose headers are not of targets of their names: the
# target for each header ("*": all others).
ABSEIL = {
    "base": {"attributes": "core_headers", "call_once": "base", "const_init": "core_headers",
             "thread_annotations": "core_headers"},
    "strings": {"*": "strings", "cord": "cord", "str_format": "str_format"},
    "synchronization": {"*": "synchronization"},
    "time": {"*": "time"},
}

# A macro's other targets, and the words before their arguments.
PARTS = ("test_", "benchmark_")


def label_of(header):
    """Of a header of Abseil."""
    package, name = header[len("absl/"):].rsplit("/", 1)
    names = ABSEIL.get(package, {})
    stem = os.path.splitext(name)[0]
    target = names.get(stem, names.get("*", stem))
    short = "@com_google_absl//absl/" + package
    return short if package.rsplit("/", 1)[-1] == target else "%s:%s" % (short, target)


def targets(path, tree):
    """(line, label, sources, headers, labels of deps) of each target of a BUILD file."""
    package = os.path.dirname(path)
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = strings(node.value, names)
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not getattr(call.func, "id", "").startswith("rill_cc_"):
            continue
        lists = {k.arg: strings(k.value, names) for k in call.keywords if k.arg}
        name = (lists.get("name") or [""])[0]
        parts = [""]
        if call.func.id == "rill_cc_component":
            parts += [p for p in PARTS if any(k.startswith(p) for k in lists)]
        for part in parts:
            label = "//%s:%s%s" % (package, name, part and "_" + part[:-1])
            srcs = lists.get(part + "srcs", ["%s_%s.cc" % (name, part[:-1])] if part else [])
            srcs = srcs + lists.get(part + "simd_srcs", [])
            deps = [full(d, package) for d in lists.get(part + "deps", [])]
            if part:
                deps.append("//%s:%s" % (package, name))
            yield (call.lineno, label, ["%s/%s" % (package, s) for s in srcs if ":" not in s],
                   ["%s/%s" % (package, h) for k in ("hdrs", "textual_hdrs") for h in lists.get(part + k, [])
                    if ":" not in h], deps)


def missing(found, read):
    """(path of the BUILD file, line, message) for what deps lack.

    `found`: {path of a BUILD file: its targets}; `read`: the text of a file, or
    None where it is not in the tree.
    """
    owners = {}
    for of_file in found.values():
        for _, label, _, headers, _ in of_file:
            for header in headers:
                owners.setdefault("rill/" + header, set()).add(label)
    for path, of_file in sorted(found.items()):
        for line, label, sources, headers, deps in of_file:
            own = {"rill/" + f for f in sources + headers}
            for file in sources + headers:
                for header in INCLUDE.findall(read(file) or ""):
                    want = {label_of(header)} if header.startswith("absl/") else owners.get(header, set())
                    if want and header not in own and not want & (set(deps) | {label}):
                        yield path, line, "%s: %s includes %s, so its deps want \"%s\"" % (
                            label, file, header, min(want))
