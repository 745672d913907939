"""Use of an agent's text files in its Python sources: as a prompt, or as data for a tool."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from workbench.agents.python_source import parse_source

_PROMPT = re.compile(r"prompt|instruct|persona|template|^_?system", re.IGNORECASE)
"""Names of variables, functions and parameters that hold prompts."""
_PROMPT_NAMES = ("prompt", "instruction")
_PROMPT_ENDINGS = {".md", ".prompt", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".mustache"}
_INSTRUCTION = re.compile(r"^\s*(- )?(global_|static_)?instruction\s*:", re.MULTILINE)
"""Instruction field of an agent defined in YAML."""


def is_prompt(path: str, contents: Iterable[str | None], sources: Iterable[str]) -> bool:
    """Return whether a file that is not Python is a prompt.

    Its name decides first. Then the `sources` that mention it decide, by how they use its content. Else its extension
    or an agent's instruction in it decides.
    """
    place = PurePosixPath(path)
    if any(word in part.lower() for part in place.parts for word in _PROMPT_NAMES):
        return True
    uses = [use for source in sources for use in _uses(source, place)]
    if uses:
        return any(uses)
    if place.suffix.lower() in {".yaml", ".yml"}:
        return any(_INSTRUCTION.search(content) for content in contents if content)
    return place.suffix.lower() in _PROMPT_ENDINGS


def _uses(source: str, place: PurePosixPath) -> Iterator[bool]:
    """Yield, for each mention of the file in a source, whether it becomes part of a prompt."""
    if place.stem not in source:
        return
    try:
        tree = parse_source(source.encode("utf-8", "surrogatepass"))
    except (SyntaxError, ValueError, RecursionError):
        return
    prompt_variables = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg and _PROMPT.search(node.arg)
        for name in ast.walk(node.value)
        if isinstance(name, ast.Name)
    }
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        inside = inside or any(name in prompt_variables or _PROMPT.search(name) for name in _names(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_named(node.value, place):
            yield inside
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def _names(node: ast.AST) -> list[str]:
    """Return the names that the value of a node is assigned to."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.keyword):
        return [node.arg or ""]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return []


def _is_named(text: str, place: PurePosixPath) -> bool:
    return text == place.stem or PurePosixPath(text).name == place.name
