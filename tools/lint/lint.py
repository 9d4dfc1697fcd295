#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the form of the source tree: what compilers and tests do not see.

usage: tools/lint/lint.py [ROOT | --root_of FILE] [--write_labels]

Prints "path:line: message" for each finding. A warning does not fail; an error
does, and has no other way out than mending it or, for sizes and includes, a
line with a reason in size_allow.txt or include_allow.txt beside this file.
"""
import ast
import collections
import fnmatch
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import classes  # noqa: E402: beside this file, wherever it is run.
from build_files import full  # noqa: E402
import includes  # noqa: E402
import pages  # noqa: E402

# Packages that other people link: they return errors and never end a program.
LIBRARY_PACKAGES = ("base", "collectors", "cuda", "device", "distributed", "envs", "estimators",
                    "flow", "formats", "libtorch", "onnx", "recorder", "replay", "samplers", "slots", "specs", "storage", "telemetry",
                    "tensordict", "tensors", "transforms")
OWN_PACKAGES = LIBRARY_PACKAGES + ("benchmarks", "examples", "python", "testing", "tools")

# The consumer is an outside project with a style of its own.
SKIPPED_FOLDERS = {".git", "__pycache__", "runs", "node_modules", "testing/consumer"}

CPP = (".h", ".cc", ".cu", ".cuh", ".inc")

# kind: (warning above, error above), in lines.
SIZES = {
    "header": (250, 400),
    "source": (450, 700),
    "kernel": (250, 400),
    "test": (600, 900),
    "function": (60, 80),
    "BUILD": (300, 450),
    "README": (120, 150),
}
MAX_INCLUDES = 12

# kind: (error above, what is counted). Of a class, or of a target ("deps").
COUNTS = {
    "functions": (40, "functions"),
    "body": (600, "lines of function bodies"),
    "virtual": (8, "virtual functions"),
    "deps": (25, "deps"),
}

THIRD_PARTY = ("absl/", "benchmark/", "Eigen/", "unsupported/Eigen/", "gmock/", "gtest/", "hwy/",
               "nlohmann/", "Random123/", "ATen/", "arrow/", "c10/", "torch/", "gymnasium_models/", "mujoco/", "nanobind/", "onnxruntime_c_api.h", "zlib.h",
               "zstd.h")
# Only where include_allow.txt says.
RESTRICTED_INCLUDE = re.compile(r"^(Eigen/|unsupported/Eigen/|nlohmann/|ATen/|arrow/|c10/|torch/|gymnasium_models/|mujoco/|nanobind/|onnxruntime|zlib\.h|zstd\.h|cuda|nvtx|cub/|thrust/|Python\.h)")
HEAVY_INCLUDE = {"regex": "compiles slowly and runs slowly", "iostream": "has static constructors"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
TODO = re.compile(r"\bTODO\b(?!\(#\d+\))")
ENDS_PROGRAM = re.compile(r"\b(throw\b|(?:std::)?(?:quick_exit|exit|abort|terminate)\s*\()")
SLEEPS = re.compile(r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|sleep)\s*\(")
READS_CLOCK = re.compile(
    r"\b(random_device|(?:system|steady|high_resolution)_clock|absl::Now|GetCurrentTimeNanos|"
    r"gettimeofday|(?<!int )clock_gettime|getrandom|getentropy|s?rand\s*\(|time\s*\(\s*(?:nullptr|NULL|0)\s*\))")
CUDA_CONDITION = re.compile(r"^\s*#\s*(?:el)?if(?!ndef RILL_\w+_H_$).*CUDA", re.M)
TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
# In documents in backticks, in headers where a test runs an example.
NAMED_TEST = {".md": re.compile(r"`(\w+Test\.\w+)`"), ".h": re.compile(r"\((\w+Test\.\w+) runs it")}
# Rows of a table whose second column is Rill's names: those are in headers.
NAMES_TABLE = "docs/torchrl_names.md"
NAMES_ROW = re.compile(r"^\| [^|]+ \| ([^|]+) \| [^|]*\|$", re.M)
FAULT_POINT = re.compile(r'\bFaultPoint\(\s*("[\w.]+")')
# Interfaces, and the suite that all their implementations pass: instantiated
# under the name of the class, without "Storage" or "Impl" at its end.
SUITES = {"RowReader": "RowReaderConformanceTest", "Storage": "StorageConformanceTest"}
# RequestReader<Base> is a Base.
DERIVED = re.compile(r"\bclass (\w+)(?: final)?\s*:\s*public (?:\w+::)*(?:RequestReader<(?:\w+::)*)?(\w+)")
INSTANTIATED = re.compile(r"\bINSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+)")
# Suites of an interface, and those that are shown to refuse wrong parts.
SUITE = re.compile(r"^class (\w+ConformanceTest)\b", re.M)
REFUSES = re.compile(r"^RILL_REFUSES_WRONG_PARTS\(\s*(\w+)", re.M)
PLAIN_RULE = re.compile(r"^(cc_library|cc_test|cc_binary)\(", re.M)
# What makes a test that the package's joined tests may take.
MAKES_TEST = re.compile(r"^rill_cc_test\(|^    test_\w+ = ", re.M)
JOINS_TESTS = re.compile(r"^rill_joined_tests\(\)\n\Z", re.M)
PUBLIC_BY_DEFAULT = re.compile(r"default_visibility\s*=\s*\[\s*\"//visibility:public\"")

# Code that only tests link.
TEST_FOLDER = re.compile(r"(^|/)(testing|conformance)/")

Finding = collections.namedtuple("Finding", "path line level message")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def strip_code(text):
    """C++ `text` with comments, strings and characters blanked, lines kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
        re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def functions(code):
    """(name, line, length) of the function bodies in stripped `code`.

    A body is a brace that follows a parenthesis outside any other body. The
    length counts its lines that hold code.
    """
    stack, start = [], 0
    for match in re.finditer(r"[{};]", code):
        at, char = match.start(), match.group()
        if char == "{":
            head = code[start:at]
            inside = any(kind == "function" for kind, _, _ in stack)
            if inside or re.search(r"\b(namespace|extern)\b", head) or ")" not in head:
                kind = "other"
            else:
                kind = "function"
            stack.append((kind, head, at))
        elif char == "}" and stack:
            kind, head, begin = stack.pop()
            if kind == "function":
                length = sum(1 for line in code[begin:at].split("\n") if line.strip())
                names = re.findall(r"([\w:~]+(?:\([\w, ]*\))?)\s*(?=\()", head)
                macro = re.search(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST)\s*\(\s*(\w+)\s*,\s*(\w+)", head)
                name = ".".join(macro.groups()) if macro else (names[0] if names else "?")
                yield name, line_of(code, begin), length
        start = at + 1


def calls(tree, prefix):
    """(call, {keyword: value}) of the top-level calls of functions whose names begin so."""
    for node in tree.body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "").startswith(prefix):
            yield call, {k.arg: k.value for k in call.keywords}


def libraries(path, tree):
    """{label: labels of deps} of the libraries and components that are not testonly."""
    package = os.path.dirname(path)
    found = {}
    for _, args in calls(tree, ("rill_cc_library", "rill_cc_component")):
        if "testonly" in args or not isinstance(args.get("name"), ast.Constant):
            continue
        # Every string of the deps, also those inside a select.
        deps = [n.value for n in ast.walk(args["deps"]) if isinstance(n, ast.Constant)
                and isinstance(n.value, str)] if "deps" in args else []
        found["//%s:%s" % (package, args["name"].value)] = [full(d, package) for d in deps]
    return found


class Lint:
    """The findings of one tree."""

    def __init__(self, root):
        self.root = root
        self.findings = []
        self.libraries = {}
        self.targets = {}  # By path of the BUILD file.
        self.fault_points = {}  # (package, name in quotes): (path, line)
        self.texts_of_tests = collections.defaultdict(str)  # By package.
        self.derived = {}  # class: (its first base, path, line)
        self.instantiated = set()  # (name, suite)
        self.suites = {}  # {suite: (path, line)}, of headers
        self.refusing_suites = set()
        self.class_bodies = collections.Counter()  # (folder, class): lines
        self.class_lines = {}  # (folder, class): (path, line)
        self.tests = set()
        self.named_tests = []  # (path, line, name)
        self.pages = pages.Pages(LIBRARY_PACKAGES, lambda path: os.path.exists(os.path.join(root, path)))
        self.words = set()  # Of headers, comments left out.
        self.named_words = []  # (line, name)
        self.size_allow = self._allow("size_allow.txt")
        self.include_allow = self._allow("include_allow.txt")

    def _allow(self, name):
        """The lines "KEY PATTERN REASON" of an allow list."""
        path = os.path.join(self.root, "tools", "lint", name)
        rows = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for number, line in enumerate(f, 1):
                    words = line.split(None, 2)
                    if not words or words[0].startswith("#"):
                        continue
                    if len(words) < 3:
                        self.add("tools/lint/" + name, number, "wants KEY PATTERN REASON")
                    else:
                        rows.append(words)
        return rows

    def add(self, path, line, message, level="error"):
        self.findings.append(Finding(path, line, level, message))

    def check_size(self, path, line, kind, what, length):
        warning, error = SIZES[kind]
        allowed = [r for r in self.size_allow if r[0] == kind and fnmatch.fnmatch(what, r[1])]
        if length > error and not allowed:
            self.add(path, line, "%s has %d lines, want <= %d" % (what, length, error))
        elif length > warning:
            self.add(path, line, "%s has %d lines, aim <= %d" % (what, length, warning), "warning")

    def check_count(self, path, line, kind, what, count):
        """`what` is what patterns match: PATH:CLASS or the label of a target."""
        limit, counted = COUNTS[kind]
        allowed = any(r[0] == kind and fnmatch.fnmatch(what, r[1]) for r in self.size_allow)
        if count > limit and not allowed:
            self.add(path, line, "%s has %d %s, want <= %d" %
                     (what.replace(path + ":", ""), count, counted, limit))

    def check_classes(self, path, code, bodies):
        """Counts what a reader of a class must hold; bodies are added up over files."""
        folder = os.path.dirname(path)
        for found in classes.classes(code):
            what = "%s:%s" % (path, found.name)
            self.check_count(path, found.line, "functions", what, found.functions)
            self.check_count(path, found.line, "virtual", what, found.virtual)
            self.class_bodies[folder, found.name] += found.body_lines
            self.class_lines.setdefault((folder, found.name), (path, found.line))
        for name, _, length in bodies:
            if "::" in name:
                self.class_bodies[folder, name.split("::")[0]] += length

    def check_class_bodies(self):
        for key, (path, line) in self.class_lines.items():
            self.check_count(path, line, "body", "%s:%s" % (path, key[1]), self.class_bodies[key])

    def check_pattern(self, path, code, pattern, message):
        for match in pattern.finditer(code):
            found = match.group().strip().rstrip("(").strip()
            line = line_of(code, match.start() + len(match.group()) - len(match.group().lstrip()))
            self.add(path, line, message % found if "%s" in message else message)

    def check_spdx(self, path, text):
        lines = text.split("\n", 2)
        mark = "// " if path.endswith(CPP) else "# "
        at = 1 if lines[0].startswith("#!") and len(lines) > 1 else 0
        if lines[at] != mark + "SPDX-License-Identifier: Apache-2.0":
            self.add(path, at + 1, "wants the line \"%sSPDX-License-Identifier: Apache-2.0\"" % mark)

    def check_guard(self, path, text):
        guard = "RILL_%s_" % re.sub(r"[^A-Za-z0-9]", "_", path).upper()
        # Highway's *-inl.h are included once for each instruction set.
        opening = "#undef %s\n#else\n#define %s\n" if path.endswith("-inl.h") else "#ifndef %s\n#define %s\n"
        if opening % (guard, guard) not in text:
            self.add(path, 1, "wants the header guard %s" % guard)
        if "#pragma once" in text:
            self.add(path, line_of(text, text.index("#pragma once")), "wants a guard, not #pragma once")

    def check_includes(self, path, text):
        includes = list(INCLUDE.finditer(text))
        if path.endswith(".h") and len(includes) > MAX_INCLUDES:
            self.add(path, 1, "%d includes, aim <= %d" % (len(includes), MAX_INCLUDES), "warning")
        for match in includes:
            quote, name = match.groups()
            self.check_include(path, line_of(text, match.start(2)), quote, name)

    def check_include(self, path, line, quote, name):
        if RESTRICTED_INCLUDE.match(name):
            if not any(name.startswith(r[0]) and fnmatch.fnmatch(path, r[1])
                       for r in self.include_allow):
                self.add(path, line, "may not include \"%s\": see tools/lint/include_allow.txt" % name)
            return
        if quote == "<":
            if name in HEAVY_INCLUDE:
                self.add(path, line, "<%s> %s" % (name, HEAVY_INCLUDE[name]))
            if name.startswith(THIRD_PARTY):
                self.add(path, line, "write \"%s\", in quotes" % name)
        elif name.startswith("rill/"):
            if not os.path.exists(os.path.join(self.root, name[len("rill/"):])):
                self.add(path, line, "\"%s\" is not in the tree" % name)
        elif not name.startswith(THIRD_PARTY):
            self.add(path, line, "\"%s\" wants its full path, \"rill/<package>/<file>\"" % name)

    def check_fault_points(self):
        """Each fault point is named by a test of its package."""
        for (package, name), (path, line) in sorted(self.fault_points.items()):
            if name not in self.texts_of_tests[package]:
                self.add(path, line, "no test of %s/ makes the fault point %s fail" % (package, name))

    def check_suites(self):
        """Each implementation passes the conformance suite of its interface."""
        bases = {base for base, _, _ in self.derived.values()}
        for name, (base, path, line) in sorted(self.derived.items()):
            subject = re.sub("(Storage)?(Impl)?$", "", name)
            while name not in bases and base is not None:
                if base in SUITES and (subject, SUITES[base]) not in self.instantiated:
                    self.add(path, line, "%s wants INSTANTIATE_TEST_SUITE_P(%s, %s, ...)" %
                             (name, subject, SUITES[base]))
                base = self.derived.get(base, (None,))[0]

    def check_wrong_parts(self):
        """Each conformance suite refuses wrong implementations."""
        for suite, (path, line) in sorted(self.suites.items()):
            if suite not in self.refusing_suites:
                self.add(path, line, "%s wants RILL_REFUSES_WRONG_PARTS(%s, ...) in a test" % (suite, suite))

    def check_cpp(self, path, text):
        code = strip_code(text)
        package = path.split("/", 1)[0]
        is_test = path.endswith("_test.cc") or bool(TEST_FOLDER.search(path))
        if is_test:
            self.texts_of_tests[package] += text
            self.instantiated.update(INSTANTIATED.findall(code))
            refusing = REFUSES.findall(code)
            self.refusing_suites.update(refusing)
            self.tests.update("Wrong%s.EachFailsTheTestThatItNames" % suite for suite in refusing)
            if path.endswith(".h"):
                for match in SUITE.finditer(code):
                    self.suites[match.group(1)] = (path, line_of(code, match.start()))
        else:
            for match in DERIVED.finditer(code):
                self.derived[match.group(1)] = (match.group(2), path, line_of(code, match.start()))
            for match in FAULT_POINT.finditer(text):
                self.fault_points.setdefault((package, match.group(1)), (path, line_of(text, match.start())))
        self.check_spdx(path, text)
        if path.endswith((".h", ".cuh")):
            self.check_guard(path, text)
        kind = ("test" if path.endswith("_test.cc") else "header" if path.endswith(".h")
                else "kernel" if path.endswith((".cu", ".cuh")) else "source")
        self.check_size(path, 1, kind, path, text.count("\n"))
        bodies = list(functions(code))
        for name, line, length in bodies:
            self.check_size(path, line, "function", path + ":" + name, length)
        if not is_test:
            self.check_classes(path, code, bodies)
        self.check_includes(path, text)
        if package in LIBRARY_PACKAGES:
            if not is_test:
                self.check_pattern(path, code, ENDS_PROGRAM, "\"%s\" in a library: return a status")
            if not path.startswith(("base/clock", "base/rng")):
                self.check_pattern(path, code, READS_CLOCK,
                                   "\"%s\": time and entropy come from base/clock and base/rng")
        if is_test:
            self.check_pattern(path, code, SLEEPS, "\"%s\" in a test: use a fake clock or wait for the event")
        if not path.startswith("device/cuda/") and not path.endswith((".cu", ".cuh")):
            self.check_pattern(path, code, CUDA_CONDITION, "CUDA is chosen by link, not by #if")

    def check_build(self, path, text):
        self.check_size(path, 1, "BUILD", path, text.count("\n"))
        try:
            tree = ast.parse(text)
        except SyntaxError as e:
            self.add(path, e.lineno or 1, "is not readable as Starlark: %s" % e.msg)
            return
        self.pages.add_build(path, tree)
        if MAKES_TEST.search(text) and not JOINS_TESTS.search(text):
            self.add(path, text.count("\n"), "the last line is not \"rill_joined_tests()\", which runs the package's tests")
        if path.split("/", 1)[0] not in OWN_PACKAGES or path.startswith("tools/"):
            return
        self.targets[path] = list(includes.targets(path, tree))
        found = libraries(path, tree)
        self.libraries.update(found)
        for label, deps in found.items():
            # A bundle is nothing but deps.
            if label.rsplit(":", 1)[1] != os.path.dirname(path).rsplit("/", 1)[-1]:
                self.check_count(path, 1, "deps", label, len(deps))
        for call, args in calls(tree, "rill_cc_"):
            for name in args:
                if name.endswith(("srcs", "hdrs")) and any(getattr(n.func, "id", "") == "glob" for n in
                                        ast.walk(args[name]) if isinstance(n, ast.Call)):
                    self.add(path, call.lineno, "sources are listed one by one, not by glob")
        code = re.sub(r"#[^\n]*", "", text)
        self.check_pattern(path, code, PLAIN_RULE, "\"%s\": use the rill_ macro of //tools:rill.bzl")
        self.check_pattern(path, code, PUBLIC_BY_DEFAULT, "public targets say so one by one")

    def check_deps(self):
        """A target's deps name who has the headers that it includes."""
        def read(path):
            path = os.path.join(self.root, path)
            if not os.path.exists(path):
                return None
            with open(path, encoding="utf-8", errors="replace") as f:
                return f.read()
        for path, line, message in includes.missing(self.targets, read):
            self.add(path, line, message)

    def check_bazelrc(self, packages):
        """Warnings are errors in each package that there is."""
        with open(os.path.join(self.root, ".bazelrc"), encoding="utf-8") as f:
            text = f.read()
        lists = re.findall(r"--per_file_copt=\^\(([\w|]+)\)/", text)
        for names in lists or [""]:
            for package in sorted(set(packages) - set(names.split("|"))):
                self.add(".bazelrc", 1, "--per_file_copt does not name the package %s" % package)

    def check_layers(self):
        """Each package has its law, and its bundle leaves no library out.

        The laws of tools/layering hold for what a bundle reaches, so a library
        outside all bundles would be outside the laws.
        """
        path = "tools/layering/laws.bzl"
        tables = {"LAWS": {}, "BESIDE_BUNDLE": {}}
        if os.path.exists(os.path.join(self.root, path)):
            with open(os.path.join(self.root, path), encoding="utf-8") as f:
                for node in ast.parse(f.read()).body:
                    if isinstance(node, ast.Assign):
                        tables[node.targets[0].id] = ast.literal_eval(node.value)
        laws, outside = tables["LAWS"], tables["BESIDE_BUNDLE"]
        for label in sorted(set(outside) - set(self.libraries)):
            self.add(path, 1, "BESIDE_BUNDLE names %s, which is not in the tree" % label)
        reached = {}
        for label in sorted(self.libraries):
            folder = label[2:].split(":")[0]
            package = folder.split("/", 1)[0]
            if package not in LIBRARY_PACKAGES or folder == "device/cuda" or label in outside:
                continue
            if package not in laws:
                self.add(folder + "/BUILD", 1, "tools/layering/laws.bzl has no law for %s" % package)
                continue
            if package not in reached:
                beside = [o for o in outside if re.match("//%s[:/]" % package, o)]
                reached[package] = self._reached(["//%s:%s" % (package, package)] + beside)
            if label not in reached[package]:
                self.add(folder + "/BUILD", 1, "%s is in no deps of the bundle //%s:%s" %
                         (label, package, package))

    def _reached(self, labels):
        seen, todo = set(), list(labels)
        while todo:
            label = todo.pop()
            if label not in seen:
                seen.add(label)
                todo += self.libraries.get(label, [])
        return seen

    def check_pages(self):
        """What pages say of targets and headers is so, here and from outside."""
        for path, line, message in self.pages.check():
            self.add(path, line, message)
        path = os.path.join(self.root, pages.LABELS_FILE)
        if os.path.isdir(os.path.dirname(path)):
            with open(path, encoding="utf-8") as f:
                if f.read() != self.pages.labels_file():
                    self.add(pages.LABELS_FILE, 1, "pages name other targets: tools/lint/lint.py --write_labels")

    def check_named_words(self):
        for line, name in self.named_words:
            if not self.words.issuperset(name.split("::")):
                self.add(NAMES_TABLE, line, "no header has the name " + name)

    def check_named_tests(self):
        for path, line, name in self.named_tests:
            if name not in self.tests:
                self.add(path, line, "there is no test %s" % name)

    def check_file(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        name = os.path.basename(path)
        self.pages.add_file(path, text)
        if path.endswith(".h"):
            self.words.update(re.findall(r"\w+", strip_code(text)))
        if path == NAMES_TABLE:
            for row in NAMES_ROW.finditer(text):
                names = re.findall(r"`([\w:]+)`", row.group(1))
                self.named_words += [(line_of(text, row.start()), name) for name in names]
        if path.endswith(CPP):
            self.tests.update(".".join(names) for names in TEST.findall(text))
        pattern = NAMED_TEST.get(os.path.splitext(path)[1])
        for match in pattern.finditer(text) if pattern else ():
            self.named_tests.append((path, line_of(text, match.start()), match.group(1)))
        if path.endswith(CPP):
            self.check_cpp(path, text)
        elif name in ("BUILD", "BUILD.bazel"):
            self.check_build(path, text)
        elif name == "README.md" and path != name:
            self.check_size(path, 1, "README", path, text.count("\n"))
        elif path.endswith((".py", ".sh")) or text.startswith("#!"):
            self.check_spdx(path, text)
        if name != "lint.py" and name != "lint_test.py" and not path.startswith("docs/"):
            self.check_pattern(path, text, TODO, "%s wants an issue: TODO(#12)")

    def run(self):
        packages = set()
        for path in sorted(files(self.root)):
            self.check_file(path)
            if "/" in path and os.path.basename(path) == "BUILD":
                packages.add(path.split("/", 1)[0])
        self.check_bazelrc(packages)
        self.check_layers()
        self.check_deps()
        self.check_class_bodies()
        self.check_fault_points()
        self.check_suites()
        self.check_wrong_parts()
        self.check_named_tests()
        self.check_named_words()
        self.check_pages()
        return self.findings


def files(root):
    """Text files of the tree, relative to it; links and build outputs left out."""
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        inside = "" if inside == "." else inside + "/"
        folders[:] = [d for d in folders if d not in SKIPPED_FOLDERS
                      and inside + d not in SKIPPED_FOLDERS
                      and not os.path.islink(os.path.join(folder, d))]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or "testdata" in inside.split("/"):
                continue
            extension = os.path.splitext(name)[1]
            if extension in CPP + (".py", ".sh", ".bzl", ".md") or name in ("BUILD", "WORKSPACE"):
                yield inside + name
            elif not extension and os.access(path, os.X_OK):
                yield inside + name


def main(argv):
    write_labels = "--write_labels" in argv
    argv = [a for a in argv if a != "--write_labels"]
    if len(argv) == 3 and argv[1] == "--root_of":
        root = os.path.dirname(os.path.realpath(argv[2]))
    else:
        root = os.path.realpath(argv[1] if len(argv) > 1 else os.path.join(HERE, "..", ".."))
    lint = Lint(root)
    findings = lint.run()
    if write_labels:
        with open(os.path.join(root, pages.LABELS_FILE), "w", encoding="utf-8") as f:
            f.write(lint.pages.labels_file())
        findings = [f for f in findings if f.path != pages.LABELS_FILE]
    for f in findings:
        print("%s:%d: %s%s" % (f.path, f.line, "" if f.level == "error" else "warning: ", f.message))
    errors = sum(f.level == "error" for f in findings)
    print("lint: %d errors, %d warnings" % (errors, len(findings) - errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
