# SPDX-License-Identifier: Apache-2.0
"""Reads the part of YAML that the manifests here are written in: mappings and
lists by indentation, plain and double-quoted scalars, texts behind `|`, comments
on lines of their own, and several documents in a file. No machine of the suite
has a library for YAML.
"""
import json
import re

_KEY = re.compile(r"([\w./-]+):(?: (.*))?$")


class YamlError(ValueError):
    pass


def _scalar(text):
    if text.startswith('"'):
        return json.loads(text)
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if not text or text[0] in "'[]{}&*!|>%@`#,?" or ": " in text or " #" in text:
        raise YamlError(f"scalar that is not plain: {text}")
    return text


class _Reader:
    def __init__(self, lines):
        self.lines = lines
        self.at = 0

    def peek(self):
        """Indentation and text of the next line that says something."""
        while self.at < len(self.lines) and not self.lines[self.at].split("#", 1)[0].strip():
            self.at += 1
        if self.at == len(self.lines):
            return -1, ""
        line = self.lines[self.at]
        text = line.lstrip(" ")
        return len(line) - len(text), text.rstrip()

    def literal(self, indent):
        taken = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or
                                             len(self.lines[self.at]) - len(self.lines[self.at].lstrip(" ")) > indent):
            taken.append(self.lines[self.at])
            self.at += 1
        width = min(len(line) - len(line.lstrip(" ")) for line in taken if line.strip())
        return "\n".join(line[width:] for line in taken).rstrip("\n") + "\n"

    def value(self, rest, indent):
        """What is behind a key or a dash whose line begins at `indent`."""
        if rest == "|":
            return self.literal(indent)
        if rest:
            return _scalar(rest)
        below, text = self.peek()
        # A list may begin below its key.
        if below > indent or below == indent and text.startswith("- "):
            return self.block(below)
        raise YamlError(f"line {self.at}: a key without a value")

    def block(self, indent):
        _, text = self.peek()
        return self.sequence(indent) if text.startswith("- ") else self.mapping(indent)

    def sequence(self, indent):
        items = []
        while True:
            at, text = self.peek()
            if at != indent or not text.startswith("- "):
                return items
            if _KEY.match(text[2:]):
                # The mapping begins on the dash's line.
                self.lines[self.at] = " " * (indent + 2) + text[2:]
                items.append(self.mapping(indent + 2))
            else:
                self.at += 1
                items.append(_scalar(text[2:]))

    def mapping(self, indent):
        found = {}
        while True:
            at, text = self.peek()
            if at < indent or text.startswith("- ") and at == indent:
                return found
            match = _KEY.match(text)
            if at != indent or not match or match[1] in found:
                raise YamlError(f"line {self.at + 1}: got \"{text}\", want a new key at column {indent + 1}")
            self.at += 1
            found[match[1]] = self.value(match[2] or "", indent)


def parse(text):
    """The documents of a file."""
    documents = []
    for part in re.split(r"^---$", text, flags=re.MULTILINE):
        reader = _Reader(part.split("\n"))
        documents.append(reader.mapping(0))
        if reader.peek()[0] != -1:
            raise YamlError(f"line {reader.at + 1}: more than a mapping")
    return documents
