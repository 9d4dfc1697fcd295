# SPDX-License-Identifier: Apache-2.0
"""What pages say of targets and headers, against BUILD files.

`python3 tools/lint/lint.py --write_labels` writes testing/consumer/labels.bzl,
with which Bazel says the same from outside.
"""
import ast
import collections
import os
import re

from build_files import full, strings

LABELS_FILE = "testing/consumer/labels.bzl"

# Pages for who works on Rill, or on a program that is copied: they may name
# what is inside.
INSIDE = ("CONTRIBUTING.md", "benchmarks/", "docs/design.md", "docs/gpu/", "docs/mutation.md", "docs/review.md",
          "examples/", "testing/", "tools/")
NO_PAGES = ("CHANGELOG.md", "docs/lab/")

PUBLIC = "//visibility:public"

# `kind`: the rule. `headers`: paths in the tree.
Target = collections.namedtuple("Target", "kind path line headers deps public")

_LABEL = re.compile(r"(?<![\w:/.])(@rill)?//([a-z]\w*(?:/\w+)*)(:[\w.]+)?(?![\w/:]|\.\.\.)")
_SHORT = re.compile(r"`([a-z]\w*(?:/\w+)*):([a-z]\w*)`")
_HEADER = re.compile(r"(?<![\w./<-])(rill/)?([\w/]+\.h)\b")
_TABLE = re.compile(r"^\| [^|\n]+ \| [^|\n]+ \| target \|\n\|[- |]+\|\n((?:\|.*\n)*)", re.M)
_CELL = re.compile(r"(?<!\\)\|")
_ROW_LABEL = re.compile(r"`(@rill//[\w/]+(?::(?:\w+|<header>))?)`")
_COMMAND = re.compile(r"`(tools/[\w./-]*\w)")
# A command with what stands behind it, in a span of code or a line of a block.
_CALL = re.compile(r"(?<![\w/])(?:\.\./rill/)?tools/([a-z_0-9]+(?:\.py)?) ([^`\n#]*)")
_FLAG = re.compile(r"--([a-z][a-z_0-9-]*)")
# What a command runs: a program's folder, or a file beside it.
_RUNS = re.compile(r"\b((?:examples|replay|tools/programs)/\w+)\b|\b(\w+\.py)\b")
_OTHERS = re.compile(r"^(absl|arrow|gtest|gmock|hwy|Eigen|mujoco|nanobind|ATen|c10|torch)/|^(gtest|gmock|onnxruntime_c_api|zlib|zstd)\.h$")


def targets(path, tree):
    """{label: Target} of a BUILD file; of a component the test and the benchmark too."""
    package, names, found = os.path.dirname(path), {}, {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = strings(node.value, names)
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call):
            continue
        lists = {k.arg: strings(k.value, names) for k in call.keywords if k.arg}
        for name in lists.get("name", []):
            kind = getattr(call.func, "id", "")
            label = "//%s:%s" % (package, name)
            is_library = kind.startswith(("rill_cc_library", "rill_cc_component"))
            found[label] = Target(
                "library" if is_library else kind, path, call.lineno,
                ["%s/%s" % (package, h) for k in ("hdrs", "textual_hdrs") for h in lists.get(k, [])],
                [full(d, package) for d in lists.get("deps", []) if not d.startswith("@")],
                PUBLIC in lists.get("visibility", []))
            if kind == "rill_device_test":
                found[re.sub("_test$", "_cuda_test", label)] = found[label]
            for part in ("test", "benchmark"):
                if any(k.startswith(part + "_") for k in lists) or kind == "rill_cc_" + part:
                    own = label if kind == "rill_cc_" + part else label + "_" + part
                    found[own] = Target(part, path, call.lineno, [], [], False)
                    if part == "benchmark":
                        found[own + "_smoke"] = found[own]
    return found


class Pages:
    """The pages and targets of a tree, and what of the one is not true of the other."""

    def __init__(self, packages, exists):
        """`packages`: their public targets are all named; `exists`: whether a path is in the tree."""
        self.packages = packages
        self.exists = exists
        self.pages = {}
        self.targets = {}
        self.files = set()
        self.programs = {}  # What commands are made of.
        self.labels = {}  # Libraries that pages name, with the headers that they are named for.

    def add_build(self, path, tree):
        self.targets.update(targets(path, tree))

    def add_file(self, path, text):
        self.files.add(path)
        if path.startswith(("tools/", "examples/", "replay/soak/")) and not path.endswith(".md"):
            self.programs[path] = text
        if path.endswith(".md") and not path.startswith(NO_PAGES):
            self.pages[path] = text

    def check(self):
        """(path, line, message) of all that is not true; fills `labels`."""
        self._find_owners()
        in_table = set()  # Labels beside a header, in a table.
        for path, text in sorted(self.pages.items()):
            yield from self._check_labels(path, text)
            yield from self._check_headers(path, text)
            yield from self._check_tables(path, text, in_table)
            yield from self._check_calls(path, text)
            for match in _COMMAND.finditer(text):
                if not self.exists(match.group(1)):
                    yield path, text.count("\n", 0, match.start()) + 1, "there is no " + match.group(1)
        for label, target in sorted(self.targets.items()):
            if target.public and target.kind == "library" and re.split("[/:]", label)[2] in self.packages:
                if label not in (in_table if target.headers else self.labels):
                    yield (target.path, target.line, "no page names %s%s; name it in its README, or make it visible "
                           "to //:__subpackages__" % (label, " beside a header, in a table" if target.headers else ""))

    def labels_file(self):
        """The text of LABELS_FILE."""
        rows = "".join('    "@rill%s": [%s],\n' % (label, ", ".join('"%s"' % h for h in sorted(headers)))
                       for label, headers in sorted(self.labels.items()))
        return ('"""Targets that pages name, with headers that they say these have.\n\n'
                'Written by `python3 tools/lint/lint.py --write_labels`.\n"""\n\n'
                "LABELS = {\n%s}\n" % rows)

    def has(self, label, header):
        """Whether who depends on `label` may include `header`: its own, or a bundle's member's."""
        target = self.targets[label]
        if target.headers:
            return header in target.headers
        members = [d for d in target.deps if d in self.targets]
        return any(self.has(d, header) for d in members)

    def public_headers(self):
        """The headers of public targets, and of the members of public bundles."""
        self._find_owners()
        bundles = [l for l, t in self.targets.items() if t.public and not t.headers and t.kind == "library"]
        found = {h for t in self.targets.values() if t.public for h in t.headers}
        found.update(h for h in self.owners if any(self.has(b, h) for b in bundles))
        return sorted(found)

    def _find_owners(self):
        self.owners = collections.defaultdict(list)
        for label, target in self.targets.items():
            for header in target.headers:
                self.owners[header].append(label)

    def _is_for_users(self, header):
        if not hasattr(self, "for_users"):
            self.for_users = set(self.public_headers())
        return header in self.for_users

    def _what_is_wrong(self, label, is_users):
        """Of a label, as `full` gives it; None if nothing is."""
        folder, name = label[2:].split(":")
        target = self.targets.get(label)
        if target is None:
            return None if self.exists("%s/%s" % (folder, name)) else "there is no target %s" % label
        if target.kind != "library":
            return None
        if is_users:
            self.labels.setdefault(label, set())
        return None if target.public or not is_users else \
            "%s is not public: name the bundle that has it, or make it public" % label

    def _check_labels(self, path, text):
        folder = os.path.dirname(path)
        found = [(m, full(m.group(2) and "//" + m.group(2) + (m.group(3) or ""), ""),
                  bool(m.group(1)) or not path.startswith(INSIDE)) for m in _LABEL.finditer(text)]
        for match in _SHORT.finditer(text):
            near = "//%s:%s" % (os.path.normpath(os.path.join(folder, match.group(1))), match.group(2))
            label = near if near in self.targets else "//%s:%s" % match.groups()
            found.append((match, label, not path.startswith(INSIDE)))
        for match, label, is_users in found:
            wrong = self._what_is_wrong(label, is_users)
            if wrong:
                yield path, text.count("\n", 0, match.start()) + 1, wrong

    def _resolve(self, name, *folders):
        """The path of a header that a page names; None if there is none or are several."""
        for folder in folders:
            path = os.path.normpath(os.path.join(folder, name))
            if path in self.files:
                return path
        found = [f for f in self.files if f.endswith("/" + name)]
        return found[0] if len(found) == 1 else None

    def _check_headers(self, path, text):
        """In the lines that are no rows of a table of targets."""
        if path.startswith(INSIDE):
            return
        tables = [m.span() for m in _TABLE.finditer(text)]
        for match in _HEADER.finditer(text):
            if any(begin <= match.start() < end for begin, end in tables):
                continue
            name = match.group(2)
            begin = text.rfind("\n", 0, match.start()) + 1
            line = text[begin:text.find("\n", match.end())]
            if _OTHERS.search(name) or "`%s`:\n" % name in text:  # A file that the page shows.
                continue
            header = self._resolve(name, "" if match.group(1) else os.path.dirname(path), "")
            at = text.count("\n", 0, match.start()) + 1
            if header is None:
                yield path, at, "there is no header %s, or several are called so" % name
            elif not self._is_for_users(header) and "private" not in line:
                yield path, at, "%s is in no public target: make it public, or say \"private\" in this line" % header

    def _check_calls(self, path, text):
        for match in _CALL.finditer(text):
            command = "tools/" + match.group(1)
            if command in self.programs:
                for flag in _FLAG.findall(match.group(2)):
                    if not self._takes(command, flag):
                        yield (path, text.count("\n", 0, match.start()) + 1,
                               "%s does not know --%s" % (command, flag))

    def _takes(self, command, flag):
        """Whether the command, or a program that it runs, has that word."""
        parts = [command]
        for folder, beside in _RUNS.findall(self.programs[command]):
            parts += [p for p in self.programs if p == "tools/" + beside or folder and p.startswith(folder + "/")]
        word = re.compile(r"--%s\b|ABSL_FLAG\([^,]+, %s," % (flag, flag.replace("-", "_")))
        return any(word.search(self.programs[part]) for part in parts)

    def _check_tables(self, path, text, in_table):
        folder = os.path.dirname(path)
        for table in _TABLE.finditer(text):
            line = text.count("\n", 0, table.start(1))
            for row in table.group(1).splitlines():
                line += 1
                cells = [c.strip() for c in _CELL.split(row)[1:-1]]
                if len(cells) != 3:
                    yield path, line, "the table has three columns, this row %d" % len(cells)
                    continue
                for message in self._check_row(folder, cells[0], cells[2], in_table):
                    yield path, line, message

    def _check_row(self, folder, files, where, in_table):
        names = re.findall(r"`([\w/-]+\.h)`", files)
        labels = _ROW_LABEL.findall(where)
        used = set()
        for name in names:
            header = self._resolve(name, folder, os.path.join(folder, os.path.dirname(names[0])))
            if header is None:
                yield "there is no header %s" % name
                continue
            stem = os.path.basename(name)[:-2]
            wants = [(said, full(said.replace("<header>", stem), "")) for said in labels]
            have = [(said, label) for said, label in wants if label in self.targets and self.has(label, header)]
            if not have and (labels or "private" not in where):
                yield "no target of this row has %s; its own: %s" % (
                    header, ", ".join(self.owners.get(header, [])) or "none")
            for said, label in have:
                used.add(said)
                in_table.add(label)
                self.labels.setdefault(label, set()).add(header)
                wrong = self._what_is_wrong(label, True)
                if wrong and said.endswith("<header>"):
                    yield wrong
        if names:
            for label in labels:
                if label not in used:
                    yield "%s has none of the row's headers" % label
