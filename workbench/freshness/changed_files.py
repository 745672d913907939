"""Files of agents that differ between two runs, with the kind and the changed lines of each.

Whether a text file is a prompt or data for a tool depends on its name.
"""

import ast
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

from workbench.agents.python_source import parse_source
from workbench.store.database.database import database
from workbench.store.database.values import get_content
from workbench.store.history.summary import Summary
from workbench.text.counting import counted

FileKind: TypeAlias = Literal["prompt", "code", "model", "data"]
_MAX_DIFFED_LINES = 5000
"""Files with more lines are not diffed."""
_MAX_SHOWN_LINES = 40
_MODEL_NAME = re.compile(r"(^|_)model(_name|_id)?$", re.IGNORECASE)
_PROMPT_ENDINGS = {".md", ".prompt", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".mustache"}
_INSTRUCTION = re.compile(r"^\s*(- )?(global_|static_)?instruction\s*:", re.MULTILINE)
"""A pattern of the instruction field of an agent defined in YAML."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of an agent that differs between two runs.

    `lines` is a unified diff without its header, cut after 40 lines. It is () if a content is too long or not stored.
    """

    agent: str
    path: str
    kind: FileKind
    lines: tuple[str, ...] = ()


def changed_files(before: Summary, after: Summary, state: Path) -> dict[str, list[ChangedFile]]:
    """Return the changed files by agent, without agents whose files one of the runs did not record."""
    found: dict[str, list[ChangedFile]] = {}
    for agent, old in before.sources.items():
        new = after.sources.get(agent)
        if not isinstance(old, dict) or not isinstance(new, dict) or not old or not new:
            continue
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        models = _models(before, agent), _models(after, agent)
        found[agent] = [_changed(agent, path, old.get(path), new.get(path), state, models) for path in paths]
    return found


def _changed(agent: str, path: str, old: Any, new: Any, state: Path, models: tuple[set[str], set[str]]) -> ChangedFile:
    before, after = _content(old, state), _content(new, state)
    kind = _kind(path, before, after, models)
    if before is None or after is None:
        return ChangedFile(agent, path, kind)
    one, other = before.splitlines(), after.splitlines()
    if max(len(one), len(other)) > _MAX_DIFFED_LINES:
        return ChangedFile(agent, path, kind)
    lines = list(difflib.unified_diff(one, other, n=0, lineterm=""))[2:]  # Without the two names of the file.
    more = [f"… {counted(len(lines) - _MAX_SHOWN_LINES, 'more line')}"] if len(lines) > _MAX_SHOWN_LINES else []
    return ChangedFile(agent, path, kind, (*lines[:_MAX_SHOWN_LINES], *more))


def _content(digest: Any, state: Path) -> str | None:
    """Return the content with a digest, or None if the content is not stored. Without a digest, the content is ""."""
    if digest is None:
        return ""
    if not isinstance(digest, str):
        return None
    try:
        content = database(state).read(lambda connection: get_content(connection, digest))
    except OSError:
        return None
    return None if content is None else content.decode("utf-8", "replace")


def _models(run: Summary, agent: str) -> set[str]:
    models = run.models.get(agent)
    return {str(name) for name in models} if isinstance(models, list) else set()


def _kind(path: str, before: str | None, after: str | None, models: tuple[set[str], set[str]]) -> FileKind:
    """Return the kind of a changed file.

    - `model`: only names of models differ.
    - `prompt`: the file is a prompt by its name, or is a Python file in which only string literals differ.
    - `code`: any other Python file.
    - `data`: any other file, such as data that a tool reads.
    """
    names = models[0] | models[1]
    if before and after and models[0] != models[1] and _without(before, names) == _without(after, names):
        return "model"
    if not path.endswith(".py"):
        return "prompt" if is_prompt(path, (before, after)) else "data"
    if not before or not after:
        return "code"
    try:
        if _without_models(before) == _without_models(after):
            return "model"
        without_texts = (ast.dump(_blank(_parsed(source))) for source in (before, after))
        return "prompt" if len(set(without_texts)) == 1 else "code"
    except (SyntaxError, ValueError, RecursionError):
        return "code"


def _without(text: str, names: set[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "\0")
    return text


def _without_models(source: str) -> str:
    """Return the dump of the syntax tree of a source without the strings that name a model.

    These are values of `model=`, and of variables, fields and parameters with such a name, for example in the user's
    own model class.
    """
    tree = _parsed(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg and _MODEL_NAME.search(node.arg):
            _blank(node.value)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_MODEL_NAME.search(_name_of(target)) for target in targets):
                _blank(node.value)
        elif isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            pairs = zip(reversed(positional), reversed(node.defaults), strict=False)
            for argument, default in (*pairs, *zip(node.kwonlyargs, node.kw_defaults, strict=True)):
                if default is not None and _MODEL_NAME.search(argument.arg):
                    _blank(default)
    return ast.dump(tree)


def _parsed(source: str) -> ast.AST:
    return parse_source(source.encode("utf-8", "surrogatepass"))


def _name_of(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""


def _blank(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return tree


def is_prompt(path: str, contents: Iterable[str | None]) -> bool:
    """Return whether a file that is not Python is a prompt: by its name, or by an agent's instruction in YAML."""
    place = PurePosixPath(path)
    if any(word in path.lower() for word in ("prompt", "instruction")):
        return True
    if place.suffix.lower() in {".yaml", ".yml"}:
        return any(_INSTRUCTION.search(content) for content in contents if content)
    return place.suffix.lower() in _PROMPT_ENDINGS
