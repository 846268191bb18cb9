"""The API reference of the book, from signatures and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HEAD = """# Python: every name

Made from the docstrings; `UPDATE=1 python/test` writes it anew. [The chapter](python.md) explains how these are used.
"""

Definition = ast.ClassDef | ast.FunctionDef

# The estimators, with the class of their kind; then the classes that users create themselves: of the others, the
# constructor is not documented.
ESTIMATORS = {
    "PersonalizedClassifier": "_Classifier",
    "RegularizedClassifier": "_Classifier",
    "PersonalizedRegressor": "_Regressor",
    "RegularizedRegressor": "_Regressor",
}
MADE = ("Arrays", "Node", "Problem", *ESTIMATORS)


def reference(package: Path) -> str:
    """The page for the package in a folder."""
    blocks = [HEAD, "## lopa\n"]
    for module, name in exported(package / "__init__.py"):
        blocks += entry("lopa", definition(package / f"{module}.py", name))
    blocks.append("## lopa.sklearn\n")
    own = package / "sklearn.py"
    tree = ast.parse(own.read_text())
    blocks.append(prose(ast.get_docstring(tree) or ""))
    for name, kind in ESTIMATORS.items():
        blocks += entry("lopa.sklearn", definition(own, name), [definition(own, "_Silos"), definition(own, kind)])
    return "\n".join(blocks)


def exported(path: Path) -> Iterator[tuple[str, str]]:
    """The names that the package exports, with their modules, in the order of their imports."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "_lopa"):
            yield from ((str(node.module), alias.name) for alias in node.names)


def definition(path: Path, name: str) -> Definition:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, Definition) and node.name == name:
            return node
    raise LookupError(f"{path} does not define {name}")


def entry(module: str, node: Definition, bases: list[Definition] | None = None) -> list[str]:
    """A class with its attributes and methods, or a function."""
    lines = [f"### {module}.{node.name}\n"]
    if isinstance(node, ast.FunctionDef) or node.name in MADE:
        lines.append(signature(node, node.name))
    lines.append(prose(ast.get_docstring(node) or ""))
    if not isinstance(node, ast.ClassDef):
        return lines
    attributes = list(documented(node))
    for base in bases or []:
        assert isinstance(base, ast.ClassDef)
        attributes += documented(base)
    lines += [f"- **{name}**: {text}" for name, text in attributes]
    if attributes:
        lines.append("")
    for part in [node, *(bases or [])]:
        for method in part.body:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                if method.name == "reference":
                    continue  # for experiments alone
                if (said := ast.get_docstring(method)) is None or is_property(method):
                    continue
                lines += [signature(method, f"{node.name}.{method.name}"), prose(said)]
    return lines


def is_property(node: ast.FunctionDef) -> bool:
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    return "property" in names or "cached_property" in names


def documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Attributes with a text below them, in the class or where it is made; and properties."""
    bodies = [node.body]
    bodies += [m.body for m in node.body if isinstance(m, ast.FunctionDef) and m.name in ("__init__", "_keep")]
    for body in bodies:
        for before, after in zip(body, body[1:], strict=False):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
            if not isinstance(text, str):
                continue
            target = before.target if isinstance(before, ast.AnnAssign) else None
            if isinstance(before, ast.Assign):
                target = before.targets[0]
            if target is not None:
                yield ast.unparse(target).removeprefix("self."), " ".join(text.split())
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and is_property(method) and not method.name.startswith("_"):
            if said := ast.get_docstring(method):
                yield method.name, " ".join(said.split())


def signature(node: Definition, name: str) -> str:
    function = node
    if isinstance(node, ast.ClassDef):
        made = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
        if not made:
            fields = [ast.unparse(part) for part in node.body if isinstance(part, ast.AnnAssign)]
            return fenced(f"{name}({', '.join(fields)})")
        function = made[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    if given.args and given.args[0].arg in ("self", "cls"):
        given.args = given.args[1:]
    back = f" -> {ast.unparse(function.returns)}" if function.returns and function is node else ""
    text = f"{name}({ast.unparse(given)}){back}"
    if len(text) > 100:
        inside = ",\n    ".join(split(ast.unparse(given)))
        text = f"{name}(\n    {inside},\n){back}"
    return fenced(text)


def split(arguments: str) -> list[str]:
    """At the commas that are not within brackets."""
    parts, depth = [""], 0
    for char in arguments:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


def prose(text: str) -> str:
    """Paragraphs as they are, formulas in fences, and `name: what it is` as a list."""
    out = []
    for paragraph in text.split("\n\n"):
        if "argmin" in paragraph or paragraph.startswith("    "):
            out.append(fenced(paragraph))
            continue
        lines: list[str] = []
        listed = re.match(r"\w+(, \w+)*: ", paragraph)
        for line in paragraph.splitlines():
            found = re.match(r"(\w+(?:, \w+)*): (.*)", line)
            if found and listed:
                lines.append(f"- **{found[1]}**: {found[2]}")
            elif lines and line.startswith(" "):
                lines[-1] += f" {line.strip()}"
            else:
                lines.append(line)
        out.append("\n".join(lines) + "\n")
    return "\n".join(out)
