# SPDX-License-Identifier: Apache-2.0
"""The classes of stripped C++ code, and their functions."""
import collections
import re

# `functions`: declared in the class, constructors and destructor left out.
# `virtual`: those that a class introduces (no override, no destructor).
Class = collections.namedtuple("Class", "name line functions virtual is_interface body_lines")

_HEAD = re.compile(r"\b(?:class|struct)\s+(?:\[\[[^\]]*\]\]\s*)?([A-Za-z_]\w*)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
_NO_FUNCTION = re.compile(r"^\s*(using|typedef|friend|static_assert|enum|union|namespace|return)\b")
_LABEL = re.compile(r"^\s*(public|protected|private)\s*:(?!:)")
_TEMPLATE = re.compile(r"^\s*template\s*<")
_NAME = re.compile(r"(operator\s*(?:\(\s*\)|[^\s(]+)|~?\w+)\s*\(")


def _without_template(text):
    """`text` behind its template parameters and requires clauses' brackets."""
    while _TEMPLATE.match(text):
        depth, at = 0, text.index("<")
        for i in range(at, len(text)):
            depth += {"<": 1, ">": -1}.get(text[i], 0)
            if depth == 0:
                text = text[i + 1:]
                break
        else:
            return text
    return text


def _function_name(statement, class_name):
    """The function that a statement of a class's body declares; None if none."""
    while _LABEL.match(statement):
        statement = _LABEL.sub("", statement, 1)
    statement = re.sub(r"\bABSL_\w+\s*(\([^()]*\))?", "", statement)
    statement = _without_template(statement).strip()
    if not statement or _NO_FUNCTION.match(statement):
        return None
    before = statement.split("(", 1)[0]
    if "(" not in statement or ("=" in before and "operator" not in before):
        return None
    match = _NAME.search(statement)
    # A member of a type like std::function<void(int)>.
    if match is None or before.count("<") > before.count(">") and "operator" not in before:
        return None
    name = match.group(1)
    return None if name.lstrip("~") == class_name else name


def classes(code):
    """The classes of stripped `code`, nested ones too."""
    found, stack = [], []  # Each of the stack: [class or None, line, statements, start, body lines]
    start = 0
    for match in re.finditer(r"[{};]", code):
        at, char = match.start(), match.group()
        text = code[start:at]
        if char == "{":
            while _LABEL.match(text):
                text = _LABEL.sub("", text, 1)
            head = _HEAD.search(_without_template(text)) if "(" not in text.split(":")[0] else None
            name = head.group(1) if head and "enum" not in text.split() else None
            if stack and stack[-1]["name"] and name is None:
                stack[-1]["statements"].append(text)
            stack.append({"name": name, "line": code.count("\n", 0, at) + 1, "statements": [], "begin": at})
        elif char == ";":
            if stack and stack[-1]["name"]:
                stack[-1]["statements"].append(text)
        elif stack:
            top = stack.pop()
            if top["name"]:
                found.append(_made(top))
            elif stack and stack[-1]["name"]:
                lines = sum(1 for line in code[top["begin"]:at].split("\n") if line.strip())
                stack[-1]["inline"] = stack[-1].get("inline", 0) + lines
        start = at + 1
    return found


def _made(top):
    functions = virtual = 0
    is_interface = False
    for statement in top["statements"]:
        name = _function_name(statement, top["name"])
        if name is None:
            continue
        functions += 1
        virtual += bool(re.search(r"\bvirtual\b", statement))
        is_interface |= bool(re.search(r"=\s*0\s*$", statement))
    return Class(top["name"], top["line"], functions, virtual, is_interface, top.get("inline", 0))
