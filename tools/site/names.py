# SPDX-License-Identifier: Apache-2.0
"""Names in pages and in comments of headers, against the words of the tree."""
import re

# They tell what was: names of then may be gone.
HISTORY = re.compile(r"^CHANGELOG\.md$|^docs/lab/|^docs/gpu/")

_SPAN = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"^(?:rill::)?([A-Za-z_]\w*(?:(?:::|\.)\w+)*)(?:\(.*\))?$")
# The lint looks for headers.
_PATH = re.compile(r"^[\w-]+(?:/[\w-]+)*/[\w-]+\.(?:cc|cu|py|sh|bzl)$")
# The lint compares these with the tests that there are.
_TEST = re.compile(r"Test\.\w+$")


# In a comment: a name with its class, or a name alone in backticks.
_IN_COMMENT = re.compile(r"\b[A-Z]\w*(?:::\w+)+|(?<=`)[A-Z]\w+(?=`)")


# Pages whose figures are copied, and from where.
COPIED_FIGURES = {"docs/choosing.md": ("docs/performance.md", "docs/collectors.md",
                                       "docs/lab/2026-11-performance-notebook.md")}
_FIGURE = re.compile(r"\d[\d,]*\d(?:\.\d+)?|\d(?:\.\d+)?")
_NO_FIGURES = re.compile(r"`[^`]*`|\]\([^)]*\)|```.*?```", re.S)


def strange_figures(path, text, sources):
    """("path:line: message") of each number of a page, outside of code, that none of `sources` has."""
    known = {figure for source in sources for figure in _FIGURE.findall(source)}
    text = _NO_FIGURES.sub(lambda m: "\n" * m.group().count("\n"), text)
    for number, line in enumerate(text.split("\n"), 1):
        for figure in _FIGURE.findall(line):
            if figure not in known:
                yield "%s:%d: the pages that it copies from do not have %s" % (path, number, figure)


def words_of(path, text):
    """The words of a source; of C++ without its comments, which could name what is gone."""
    return re.findall(r"\w+", re.sub(r"//[^\n]*", "", text) if path.endswith((".h", ".cc", ".cu")) else text)


def unknown_in_comments(path, text, words):
    """("path:line: message") of each name in a header's comments that `words` does not have."""
    for number, line in enumerate(text.split("\n"), 1):
        for name in _IN_COMMENT.findall(line.partition("//")[2]):
            if not words.issuperset(name.split("::")):
                yield "%s:%d: nothing in the tree is called %s" % (path, number, name)


def unknown(path, text, words, others, paths):
    """("path:line: message") of each name that neither `words` nor `others` have, and of each file that there is not."""
    if HISTORY.search(path):
        return
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        for span in _SPAN.findall("" if is_code else line):
            if _PATH.match(span) and not any(p == span or p.endswith("/" + span) for p in paths):
                yield "%s:%d: there is no file %s" % (path, number, span)
            name = _NAME.match(span)
            if not name or not re.search(r"[A-Z]", name.group(1)) or name.group(1).isupper() or _TEST.search(name.group(1)):
                continue
            parts = re.split(r"::|\.", name.group(1))
            if name.group(1) not in others and not words.issuperset(parts):
                yield "%s:%d: nothing in the tree is called %s; a name of others goes into %s" % (
                    path, number, name.group(1), "tools/site/names_of_others.txt")
