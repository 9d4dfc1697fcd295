# SPDX-License-Identifier: Apache-2.0
"""The type stubs beside the package's files: each public name has one, with the signature that it has."""
import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest

import rill
from rill import _rill

FOLDER = os.path.dirname(rill.__file__)


def tree(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return ast.parse(file.read())


def modules():
    return sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py"))


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__len__", "__getitem__", "__getitems__", "__iter__",
                                                "__enter__", "__exit__", "__contains__", "__eq__", "__version__")


def parameters(function):
    """Names, kinds and which have defaults, as text."""
    args = function.args
    before = [each.arg for each in args.posonlyargs + args.args]
    parts = [name + ("=" if i >= len(before) - len(args.defaults) else "") for i, name in enumerate(before)]
    if args.vararg or args.kwonlyargs:
        parts.append("*" + (args.vararg.arg if args.vararg else ""))
    parts += [each.arg + ("" if default is None else "=") for each, default in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg:
        parts.append("**" + args.kwarg.arg)
    return ", ".join(parts)


def names(body, prefix=""):
    """What a module or a class has that is public, with the signatures of functions."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and is_public(node.name):
            key = prefix + node.name
            if isinstance(node, ast.ClassDef):
                found[key] = "class(%s)" % ", ".join(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                found.update(names(node.body, key + "."))
            else:
                kinds = [ast.unparse(each) for each in node.decorator_list]
                found[key + (".setter" if any(kind.endswith(".setter") for kind in kinds) else "")] = (
                    " ".join(kinds) + parameters(node))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and is_public(target.id):
                    found[prefix + target.id] = "value"
        elif isinstance(node, ast.AnnAssign) and is_public(node.target.id):
            found[prefix + node.target.id] = "value"
        elif isinstance(node, ast.ImportFrom) and not prefix and node.module != "__future__":
            found.update({"from %s import %s" % (node.module, each.name): "" for each in node.names})
    return found


class StubsTest(unittest.TestCase):
    def test_each_public_name_has_its_signature(self):
        self.assertIn("collectors", modules())
        for module in modules():
            has = names(tree(module + ".py").body)
            stub = names(tree(module + ".pyi").body)
            if module != "__init__":
                has, stub = ({key: value for key, value in each.items() if not key.startswith("from ")}
                             for each in (has, stub))
            with self.subTest(module):
                # Attributes of objects, which __init__ sets, are in the stub alone.
                attributes = {key for key, value in stub.items() if value == "value" and key.count(".") == 1}
                self.assertEqual(has, {key: value for key, value in stub.items() if key not in attributes - set(has)})

    def test_all_is_annotated(self):
        for module in modules() + ["_rill"]:
            for node in ast.walk(tree(module + ".pyi")):
                if not isinstance(node, ast.FunctionDef):
                    continue
                with self.subTest(module, function=node.name):
                    args = node.args
                    given = args.posonlyargs + args.args + args.kwonlyargs + [args.vararg, args.kwarg]
                    bare = [each.arg for each in given if each is not None and each.annotation is None]
                    self.assertIn(bare, ([], ["self"], ["cls"]))
                    self.assertIsNotNone(node.returns)

    def test_the_extension_is_as_its_stub_says(self):
        stub = {}
        for node in ast.walk(tree("_rill.pyi")):
            for each in ast.iter_child_nodes(node):
                if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                    stub[getattr(node, "name", ""), each.name] = each
        self.assertEqual([name for owner, name in stub if not owner and not hasattr(_rill, name)], [])
        for name, part in vars(_rill).items():
            if name.startswith("__"):
                continue
            with self.subTest(name):
                self.assertIn(("", name), stub, "run tools/wheel --stubs")
                members = vars(part) if isinstance(part, type) else {}
                for owner, key, member in [("", name, part)] + [(name, *each) for each in members.items()]:
                    member = getattr(member, "fget", member)
                    texts = getattr(member, "__nb_signature__", None)
                    # __new__ and its empty __init__ are one of the two in a stub.
                    if texts is None or key in ("__new__", "__init__"):
                        continue
                    self.assertEqual(_named(texts[0][0]), _named(ast.unparse(stub[owner, key].args)), key)

    def test_a_type_checker_agrees(self):
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("there is no mypy")
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/mypy.ini", "w", encoding="utf-8") as config:
                config.write("[mypy]\nignore_missing_imports = True\n")
            done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "--concise", "--mypy-config-file", config.name, "rill"],
                                  capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.dirname(FOLDER)})
        # It knows no functions of nanobind's.
        wrong = [line for line in done.stdout.splitlines() if not line.startswith(("rill._rill.", "rill.sb3"))]
        self.assertEqual(wrong, [])


def _named(text):
    """The names of parameters in a signature, but those that it does not name."""
    return [name for name in re.findall(r"(\w+)\s*:", text) if not re.fullmatch(r"arg\d*", name)]


if __name__ == "__main__":
    unittest.main()
