# SPDX-License-Identifier: Apache-2.0
"""Public headers as Doxygen wants them: plain comments become documentation.

Copies have the lines of their headers, so that a warning names the right one.
"""
import re

_LEAD = re.compile(r"^(\s*)//(.*)$")
_TRAIL = re.compile(r"^(.*[;,{(].*?|\s*\w+\s*(?:=.*?)?)(\s{2})// (.*)$")
# Comments that are for tools.
_TOOL = re.compile(r"^\s*(NOLINT|IWYU|SPDX|clang-format|NEXT)")
_EXAMPLE = re.compile(r"^\s*Example\b")
_INDENTED = re.compile(r"^   +\S")
_MACRO = re.compile(r"\b(RILL_[A-Z_]+|(EXPECT|ASSERT|INSTANTIATE)_\w+)\(")
# "Thread-safety: ..." in the middle of a block begins a paragraph.
_LABEL = re.compile(r"^ ([A-Z][\w/-]*(?: \w+)?): ")
_SPAN = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"--|(?<!\w)::(?=\w)|[\\@<>#%&*\[\]|~]")
_LIST = re.compile(r"^(\s*)(\*|-) ")


def escaped(text):
    """`text` of a comment, in which only spans in backticks mean something."""
    item = _LIST.match(text)
    head, rest = (item.group(1) + "- ", text[item.end():]) if item else ("", text)
    parts = _SPAN.split(rest)
    if any("`" in part for part in parts[::2]):  # A span over two lines: plain text.
        parts = [rest.replace("`", "")]
    return head + "".join(part if at % 2 else _SPECIAL.sub(lambda m: "\\" + m.group(), part)
                          for at, part in enumerate(parts))


def _block(indent, texts):
    """The lines of a comment block as documentation."""
    lines, at = [], 0
    while at < len(texts):
        begin = at + 1 if _EXAMPLE.match(texts[at]) else at
        end = begin
        while end < len(texts) and (_INDENTED.match(texts[end]) or not texts[end].strip()):
            end += 1
        while end > begin and not texts[end - 1].strip():
            end -= 1
        is_code = end > begin and (begin > at or _MACRO.search("\n".join(texts[begin:end])))
        if not is_code:
            label = _LABEL.match(texts[at])
            text = escaped(texts[at])
            if label and at > 0 and texts[at - 1].strip():
                text = " @n " + text.lstrip()
            lines.append(text)
            at += 1
            continue
        code = texts[begin:end]
        if begin > at:
            lines.append(escaped(texts[at]) + " @code{.cpp}")
        elif lines:
            lines[-1] += " @code{.cpp}"
        else:
            code[0] = " @code{.cpp} " + code[0].strip()
        lines += code[:-1] + [code[-1] + " @endcode"]
        at = end
    return ["%s///%s" % (indent, line) for line in lines]


def _scopes(code):
    """Of each line of stripped `code`: whether it begins in a function's body or inside parentheses."""
    inside, stack, parens, begin = [], [], 0, 0
    for line in code.split("\n"):
        inside.append("function" in stack or parens > 0)
        for char in line:
            if char in "()":
                parens += 1 if char == "(" else -1
            elif char == "{":
                head = begin if isinstance(begin, str) else ""
                is_type = re.search(r"\b(namespace|class|struct|enum|union|extern)\b", head)
                stack.append("type" if is_type else "function")
                begin = ""
                continue
            elif char == "}" and stack:
                stack.pop()
            if char in "};":
                begin = ""
            else:
                begin = (begin if isinstance(begin, str) else "") + char
        begin = (begin if isinstance(begin, str) else "") + " "
        if line.lstrip().startswith("#"):
            begin = ""
    return inside


def converted(text, strip_code):
    """A header's text for Doxygen; `strip_code` is the lint's."""
    lines = text.split("\n")
    inside = _scopes(strip_code(text))
    out, at, has_file = [], 0, False
    while at < len(lines):
        lead = _LEAD.match(lines[at])
        if not lead:
            trail = _TRAIL.match(lines[at])
            if (trail and not inside[at] and not inside[min(at + 1, len(lines) - 1)] and not _TOOL.match(trail.group(3)) and
                    re.search(r"[;,]$|^\s*k\w+$|^\s*k\w+ = [^,]*$", trail.group(1))):
                out.append("%s%s///< %s" % (trail.group(1), trail.group(2), escaped(trail.group(3))))
                column = lines[at].index("// ", len(trail.group(1)))
                at += 1
                while at < len(lines) and lines[at].startswith(" " * column + "//"):
                    out.append(" " * column + "///<" + escaped(lines[at][column + 2:]))
                    at += 1
                continue
            out.append(lines[at])
            at += 1
            continue
        end = at
        while end < len(lines) and _LEAD.match(lines[end]):
            end += 1
        below = lines[end].strip() if end < len(lines) else ""
        texts = [_LEAD.match(line).group(2) for line in lines[at:end]]
        if _TOOL.match(texts[0]) or inside[at]:
            out += lines[at:end]
        elif not below and not has_file and out and not out[-1] and not lead.group(1):
            has_file = True  # The first that stands alone is of the whole header.
            out[-1] = "/// @file"
            out += _block("", texts)
        elif not below or below[0] in "#})":
            out += lines[at:end]
        else:
            out += _block(lead.group(1), texts)
        at = end
    return "\n".join(out)
