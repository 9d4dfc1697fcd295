# SPDX-License-Identifier: Apache-2.0
"""Names in pages, in spans of code, against the words of the tree."""
import re

# They tell what was: names of then may be gone.
HISTORY = re.compile(r"^CHANGELOG\.md$|^docs/lab/|^docs/gpu/")

_SPAN = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"^(?:rill::)?([A-Za-z_]\w*(?:(?:::|\.)\w+)*)(?:\(.*\))?$")
# The lint compares these with the tests that there are.
_TEST = re.compile(r"Test\.\w+$")


def words_of(text):
    return re.findall(r"\w+", text)


def unknown(path, text, words, others):
    """("path:line: message") of each name that neither `words` nor `others` have."""
    if HISTORY.search(path):
        return
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        for span in _SPAN.findall("" if is_code else line):
            name = _NAME.match(span)
            if not name or not re.search(r"[A-Z]", name.group(1)) or _TEST.search(name.group(1)):
                continue
            parts = re.split(r"::|\.", name.group(1))
            if name.group(1) not in others and not words.issuperset(parts):
                yield "%s:%d: nothing in the tree is called %s; a name of others goes into %s" % (
                    path, number, name.group(1), "tools/site/names_of_others.txt")
