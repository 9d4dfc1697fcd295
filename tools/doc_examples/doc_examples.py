#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C++ examples of headers and pages: writes them as a source to compile, and
finds those that nobody compiles.

usage: doc_examples.py --out=FILE.cc --context=HEADER NAME=FILE ...
       doc_examples.py --check ROOT | --check_root_of FILE

An example is, in a header, an indented run of comment lines below a line
"Example ...:", or such a run with a macro of Rill or GoogleTest in it; on a
page (*.md), a block that is fenced as ```cpp.

The first form writes every example of the files, word for word, into one
source: statements into a function of their own, with #line as their place. NAME
is the file's path in the tree. The names that examples take for granted are declared in HEADER, in the namespace
rill::doc_examples, or, where two files mean different things by one name, in
the namespace inside it that is named as the file, e.g. storage_README_md.

The second names, as "path:line: message", what no rill_doc_examples target of
the tree compiles. A block that another target compiles has the line
"<!-- compiled by //its:label -->" above it.
"""
import argparse
import ast
import collections
import os
import re
import sys

MAX_COLUMNS = 80

# The consumer is an outside project.
SKIPPED_FOLDERS = {".git", "testing/consumer"}

MARK = re.compile(r"\s*// Example\b")
INDENTED = re.compile(r"\s*//   +\S")
BLANK = re.compile(r"\s*//\s*$")
MACRO = re.compile(r"\b(RILL_[A-Z_]+|(EXPECT|ASSERT|INSTANTIATE)_\w+)\(")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)

FENCE = re.compile(r"\s*```(.*)$")
CPP_TAGS = {"cpp", "c++", "C++", "cc", "cxx"}
OTHER_TAGS = {"sh", "json", "starlark", "python", "text", "diff"}
# What a block without a language must not look like.
LIKE_CPP = re.compile(r"[)}];\s*(//.*)?$|^\s*#include|\bRILL_[A-Z_]+\(|\brill::", re.M)
COMPILED_BY = re.compile(r"<!-- compiled by //(\S*):(\S+) -->$")

# Where code stands that is no list of statements.
PROGRAM = re.compile(r"^int main\(", re.M)
AT_NAMESPACE = re.compile(r"^INSTANTIATE_\w+\(", re.M)
IN_TEST = re.compile(r"\b(RILL_)?(EXPECT|ASSERT)_\w+\(")
INCLUDE = re.compile(r"\s*#include\b")

# Of what an example may leave unused.
UNUSED = ("variable", "but-set-variable", "parameter", "value", "result", "local-typedefs")

# `line` is the code's first one, from 1.
Example = collections.namedtuple("Example", "path line code")
Finding = collections.namedtuple("Finding", "path line message")


def header_examples(path, text, findings):
    """The examples in the comments of a header."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        is_marked = bool(MARK.match(lines[at]))
        begin = end = at + 1 if is_marked else at
        while end < len(lines) and (INDENTED.match(lines[end]) or BLANK.match(lines[end])):
            end += 1
        while end > begin and BLANK.match(lines[end - 1]):
            end -= 1
        code = [re.sub(r"^\s*// {0,3}", "", line) for line in lines[begin:end]]
        if is_marked and not code:
            findings.append(Finding(path, at + 1, "an example without code, want it on the lines "
                                    "below, three blanks behind the slashes"))
        if code and (is_marked or MACRO.search("\n".join(code))):
            yield Example(path, begin + 1, code)
        at = max(end, at + 1)


def page_examples(path, text, findings, root=None):
    """The examples on a page; with `root`, those of other targets are looked up."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not FENCE.match(lines[end]):
            end += 1
        tag, code = fence.group(1).strip(), lines[at + 1:end]
        other = COMPILED_BY.match(lines[at - 1]) if at > 0 else None
        if other:
            if root is not None and not has_target(root, *other.groups()):
                findings.append(Finding(path, at, "there is no target //%s:%s" % other.groups()))
        elif tag in CPP_TAGS:
            yield Example(path, at + 2, code)
        elif tag and tag not in OTHER_TAGS:
            findings.append(Finding(path, at + 1, "a block of \"%s\", want cpp, %s or nothing" %
                                    (tag, ", ".join(sorted(OTHER_TAGS)))))
        elif not tag and LIKE_CPP.search("\n".join(code)):
            findings.append(Finding(path, at + 1, "C++ in a block without a language, want ```cpp"))
        at = end + 1


def examples(path, text, findings, root=None):
    if path.endswith(".md"):
        return page_examples(path, text, findings, root)
    return header_examples(path, text, findings)


# --- Writing them ------------------------------------------------------------

def name_of(path):
    return re.sub(r"\W", "_", path)


def source_of(example, out):
    """The lines of one example; `out` is the file that they go to."""
    text = "\n".join(example.code)
    place = "#line %d \"%s\"" % (example.line, example.path)
    code = [place] + ["" if INCLUDE.match(line) else line for line in example.code]
    name = "Example%d" % example.line
    if PROGRAM.search(text) or AT_NAMESPACE.search(text):
        return code
    if IN_TEST.search(text):
        return ["void %s() {" % name] + code + ["}"]
    return ["absl::Status %s() {" % name] + code + ["  return absl::OkStatus();", "}"]


def write_source(named_files, context, out):
    """The source that has all their examples; a file without any is an error."""
    findings, includes, outside, inside = [], [], [], []
    for path, file in (named.split("=", 1) for named in named_files):
        with open(file, encoding="utf-8") as f:
            text = f.read()
        found = list(examples(path, text, findings))
        if not found:
            findings.append(Finding(path, 1, "no example, want it out of the srcs"))
        if path.endswith(".h"):
            includes.append("#include \"rill/%s\"" % path)
        body = []
        for example in found:
            includes += [line for line in example.code if INCLUDE.match(line)]
            is_program = PROGRAM.search("\n".join(example.code))
            (outside if is_program else body).extend(source_of(example, out))
        namespaces = NAMESPACE.findall(text) if path.endswith(".h") else []
        uses = ["using namespace %s;" % namespaces[0]] if namespaces else []
        inside += ["namespace %s {" % name_of(path)] + uses + body + ["}", ""]
    lines = (["#include \"absl/status/status.h\"", "#include \"%s\"" % context] + includes +
             ["#pragma GCC diagnostic ignored \"-Wunused-%s\"" % what for what in UNUSED] +
             outside + ["namespace rill::doc_examples {", ""] + inside + ["}", ""])
    with open(out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines))
    return findings


# --- Finding the others ------------------------------------------------------

def files(root):
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        inside = "" if inside == "." else inside + "/"
        folders[:] = [d for d in folders if inside + d not in SKIPPED_FOLDERS
                      and not os.path.islink(os.path.join(folder, d))]
        for name in names:
            yield inside + name


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def has_target(root, package, name):
    path = os.path.join(package, "BUILD")
    return (os.path.exists(os.path.join(root, path)) and
            "name = \"%s\"" % name in read(root, path))


def compiled_files(root, path):
    """The srcs of a BUILD file's rill_doc_examples."""
    for node in ast.parse(read(root, path)).body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "rill_doc_examples":
            for keyword in call.keywords:
                if keyword.arg == "srcs":
                    yield from ast.literal_eval(keyword.value)


def check(root):
    findings, compiled, found = [], set(), []
    for path in sorted(files(root)):
        if os.path.basename(path) == "BUILD" and "/doc_examples/" in path:
            compiled.update(compiled_files(root, path))
        elif path.endswith((".h", ".md")) and path != "CHANGELOG.md":
            found += examples(path, read(root, path), findings, root)
    for example in found:
        if example.path not in compiled:
            findings.append(Finding(example.path, example.line,
                                    "an example that nothing compiles, want the file in the srcs "
                                    "of %s/doc_examples" % example.path.split("/")[0]))
        for number, line in enumerate(example.code, example.line):
            if example.path.endswith(".h") and len(line) > MAX_COLUMNS - 5:
                findings.append(Finding(example.path, number, "an example's line of more than %d "
                                        "columns" % MAX_COLUMNS))
    return findings


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--context")
    parser.add_argument("--check")
    parser.add_argument("--check_root_of")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args(argv[1:])
    if args.out:
        findings = write_source(args.files, args.context, args.out)
    else:
        findings = check(args.check or os.path.dirname(os.path.realpath(args.check_root_of)))
    for f in findings:
        print("%s:%d: %s" % f)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
