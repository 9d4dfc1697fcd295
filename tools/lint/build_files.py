# SPDX-License-Identifier: Apache-2.0
"""What BUILD files say, read without Bazel."""
import ast


def full(label, package):
    """`label` of a BUILD file or a page with its package and its name; another repository's as it is."""
    label = label[len("@rill"):] if label.startswith("@rill//") else label
    if label.startswith(":"):
        return "//%s%s" % (package, label)
    return label if ":" in label or label.startswith("@") else "%s:%s" % (label, label.rsplit("/", 1)[-1])


def strings(node, names):
    """The strings of a list, of a sum of lists, of lists that `names` has, of a select."""
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.append(part.value)
        elif isinstance(part, ast.Name):
            found += names.get(part.id, [])
    return found
