"""Likely causes of a different outcome of the same case in two runs.

Only inputs that can have had an effect are named. If the agent said the same, made the same calls and got the same
answers, a change of its files is not a cause.
"""

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

from workbench.agents.python_source import parse_source
from workbench.counting import counted, few
from workbench.database.database import database
from workbench.database.values import get_content
from workbench.dependencies.change import KINDS, Change, Input, describe_few
from workbench.dependencies.record import criterion_of
from workbench.execution import Execution
from workbench.history.changed_inputs import Side, changed_inputs, describe_with_values
from workbench.history.file_kinds import is_prompt
from workbench.history.summary import Summary
from workbench.judge.judge_details import judge_name

CauseKind: TypeAlias = Literal["prompt", "code", "model", "data", "versions", "tool_output", "agent"] | Input
"""Kind of cause: an input kind. `prompt`, `code`, `model` and `data` distinguish kinds of agent files."""
FileKind: TypeAlias = Literal["prompt", "code", "model", "data"]
_MAX_DIFFED_LINES = 5000
"""Files with more lines are not diffed."""
_MAX_SHOWN_LINES = 40
_CODE = {".py"}
_FILE_INPUTS: tuple[Input, ...] = ("agent_file", "agent_folder")
_OTHER_AGENT_INPUTS: tuple[Input, ...] = tuple(
    name for name, kind in KINDS.items() if kind.effect == "run" and name not in (*_FILE_INPUTS, "environment")
)
"""Kinds of input that reach the agent, besides files and environment."""
_MODEL_NAME = re.compile(r"(^|_)model(_name|_id)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cause:
    """One likely cause. `what` describes the difference; for files, it lists them."""

    kind: CauseKind
    what: str


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of an agent that differs between two runs.

    `lines` is a unified diff without its header, or empty if the file's content is not stored.
    """

    agent: str
    path: str
    kind: FileKind
    lines: tuple[str, ...] = ()


def changed_files(before: Summary, after: Summary, state: Path) -> dict[str, list[ChangedFile]]:
    """Return the changed files by agent.

    An agent is left out if one of the runs did not record its files.
    """
    found: dict[str, list[ChangedFile]] = {}
    for agent, old in before.sources.items():
        new = after.sources.get(agent)
        if not isinstance(old, dict) or not isinstance(new, dict) or not old or not new:
            continue
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        models = _models(before, agent), _models(after, agent)
        sources = _sources(new, state) if any(PurePosixPath(path).suffix not in _CODE for path in paths) else []
        found[agent] = [_changed(agent, path, old.get(path), new.get(path), state, models, sources) for path in paths]
    return found


def causes(before: Side, after: Side, files: dict[str, list[ChangedFile]]) -> Iterator[Cause]:
    """Yield the likely causes for one case in two runs. `files` is the result of `changed_files`."""
    (_, old), (_, new) = before, after
    changes, _ = changed_inputs(before, after)
    by_kind: dict[Input, list[Change]] = {}
    for change in changes:
        by_kind.setdefault(change.input, []).append(change)
    named: list[Cause] = []
    if "expected" in by_kind:
        named.append(Cause("expected", "the reference of the case"))
    decisive = _decisive(old, new)
    decided = [change for change in by_kind.get("criteria", ()) if _decided(change, before, after, decisive)]
    if decided:
        named.append(Cause("criteria", ", ".join(describe_with_values(change, before, after) for change in decided)))
    named += _judges(before, after, by_kind.get("judge", ()), decisive)
    if decisive and "function" in by_kind:
        named.append(Cause("function", _names([change.name for change in by_kind["function"]])))
    yield from named
    if _steps_differ(old, new) or _broke(old) != _broke(new):
        yield from _agent_causes(before, after, by_kind, files)
    elif not named and _judged(new):
        yield Cause("judge", "the judge scored the same transcript differently")


def _decisive(old: Execution, new: Execution) -> set[str]:
    """Return the criteria that made the difference.

    These are the criteria with another status, else those with another score, else all. There are none if a run of the
    case broke off.
    """
    if _broke(old) or _broke(new):
        return set()
    one, other = old.scores, new.scores
    names = {**one, **other}
    alone = one.keys() ^ other.keys()
    both = one.keys() & other.keys()
    return (
        alone | {name for name in both if one[name].status != other[name].status}
        or {name for name in both if one[name].score != other[name].score}
        or set(names)
    )


def _decided(change: Change, before: Side, after: Side, decisive: set[str]) -> bool:
    """Return whether a change of a criterion can have made the difference.

    A new threshold made no difference if the score is on the same side of both thresholds.
    """
    old, new, criterion = before[1], after[1], criterion_of(change)
    judged = criterion in old.scores or criterion in new.scores
    if not decisive or (judged and criterion not in decisive):
        return False
    one, other = old.scores.get(criterion), new.scores.get(criterion)
    if not change.name.endswith(" threshold") or one is None or other is None or one.status == other.status:
        return True
    if other.score is None or one.threshold is None:
        return True
    return (other.score >= one.threshold) != (other.status == "passed")


def describe_run_differences(before: Summary, after: Summary) -> Iterator[str]:
    """Yield the differences between two runs as a whole, as text. Files are not included."""
    for name in sorted({*before.versions, *after.versions}):
        old, new = before.versions.get(name), after.versions.get(name)
        if before.versions and after.versions and old != new:
            yield f"{name} {old or 'none'} -> {new or 'none'}"
    for agent in sorted({*before.models} & {*after.models}):
        if before.models[agent] != after.models[agent]:
            yield f"models of {agent}: {_names(before.models[agent])} -> {_names(after.models[agent])}"
    if before.git and after.git and before.git.get("commit") != after.git.get("commit"):
        yield f"commit {str(before.git.get('commit'))[:12]} -> {str(after.git.get('commit'))[:12]}"


def _agent_causes(
    before: Side, after: Side, by_kind: dict[Input, list[Change]], files: dict[str, list[ChangedFile]]
) -> Iterator[Cause]:
    """Yield the likely causes for the agent's different behavior."""
    (old_run, old), (new_run, new) = before, after
    agent = new.ref.agent
    found = [*_file_causes(old_run, new_run, agent, files.get(agent, ()))]
    listed = {file.path for file in files.get(agent, ())}
    others = [change.name for kind in _FILE_INPUTS for change in by_kind.get(kind, ()) if change.name not in listed]
    if others:
        found.append(Cause("agent_file", _names(others)))
    if old_run.versions and new_run.versions and old_run.versions != new_run.versions:
        names = {*old_run.versions, *new_run.versions}
        differ = sorted(name for name in names if old_run.versions.get(name) != new_run.versions.get(name))
        found.append(Cause("versions", _names(differ)))
    if "environment" in by_kind:
        found.append(Cause("environment", describe_few(by_kind["environment"])))
    found += [
        Cause(kind, _names([change.name for change in by_kind[kind]]))
        for kind in _OTHER_AGENT_INPUTS
        if kind in by_kind
    ]
    if _tools_answered_differently(old, new):
        found.append(Cause("tool_output", "the same tool calls returned different answers"))
    yield from found
    if not found and "expected" not in by_kind:
        why = "no recorded input differs" if agent in files else "its files were not recorded in both runs"
        yield Cause("agent", f"the agent behaved differently; {why}")


def _file_causes(before: Summary, after: Summary, agent: str, files: Iterable[ChangedFile]) -> Iterator[Cause]:
    files = list(files)
    kinds: tuple[FileKind, ...] = ("prompt", "code", "data")
    for kind in kinds:
        paths = [file.path for file in files if file.kind == kind]
        if paths:
            yield Cause(kind, _names(paths))
    model_files = [file.path for file in files if file.kind == "model"]
    known = agent in before.models and agent in after.models
    if known and before.models[agent] != after.models[agent]:
        yield Cause("model", f"{_names(before.models[agent])} -> {_names(after.models[agent])}")
    elif model_files:
        yield Cause("model", _names(model_files))


def _judges(before: Side, after: Side, changes: Iterable[Change], decisive: set[str]) -> Iterator[Cause]:
    old, new = before[1].scores, after[1].scores
    named = set()
    for name in (name for name in new if name in decisive and name in old):
        one, other = judge_name(old[name].details), judge_name(new[name].details)
        if one and other and one != other:
            named.add(name)
            yield Cause("judge", f"{name}: {one} -> {other}")
    for change in changes:
        criterion = criterion_of(change)
        if criterion not in named and (criterion in decisive or criterion not in new):
            yield Cause("judge", describe_with_values(change, before, after))


def _sources(files: dict[str, Any], state: Path) -> list[str]:
    """Return the Python sources of an agent that are stored."""
    return [_content(digest, state) or "" for path, digest in files.items() if PurePosixPath(path).suffix in _CODE]


def _changed(
    agent: str, path: str, old: Any, new: Any, state: Path, models: tuple[set[str], set[str]], sources: list[str]
) -> ChangedFile:
    before, after = _content(old, state), _content(new, state)
    kind = _kind(path, before, after, models, sources)
    if before is None or after is None:
        return ChangedFile(agent, path, kind)
    one, other = before.splitlines(), after.splitlines()
    if max(len(one), len(other)) > _MAX_DIFFED_LINES:
        return ChangedFile(agent, path, kind)
    lines = [line for line in difflib.unified_diff(one, other, n=0, lineterm="") if line[:3] not in ("---", "+++")]
    more = [f"… {counted(len(lines) - _MAX_SHOWN_LINES, 'more line')}"] if len(lines) > _MAX_SHOWN_LINES else []
    return ChangedFile(agent, path, kind, (*lines[:_MAX_SHOWN_LINES], *more))


def _content(digest: Any, state: Path) -> str | None:
    """Return the content with this digest, or None if it is not stored.

    A file that did not exist has no digest and counts as empty.
    """
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


def _kind(
    path: str, before: str | None, after: str | None, models: tuple[set[str], set[str]], sources: list[str]
) -> FileKind:
    """Return the kind of a changed file.

    - `model`: only names of models differ.
    - `prompt`: the file is used as a prompt, or only string literals of a Python file differ.
    - `code`: any other Python file.
    - `data`: any other file, such as one in which a tool looks things up.
    """
    names = models[0] | models[1]
    if before and after and models[0] != models[1] and _without(before, names) == _without(after, names):
        return "model"
    if PurePosixPath(path).suffix not in _CODE:
        return "prompt" if is_prompt(path, (before, after), sources) else "data"
    if not before or not after:
        return "code"
    try:
        if _without_models(before) == _without_models(after):
            return "model"
        return "prompt" if _without_texts(before) == _without_texts(after) else "code"
    except (SyntaxError, ValueError, RecursionError):
        return "code"


def _without(text: str, names: set[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "\0")
    return text


def _without_texts(source: str) -> str:
    return ast.dump(_blank(_parsed(source)))


def _without_models(source: str) -> str:
    """Return the syntax tree without the strings that name a model.

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


def _steps_differ(old: Execution, new: Execution) -> bool:
    """Return whether the tool calls, their answers or what the agent said differ."""
    return old.steps is not None and new.steps is not None and old.steps != new.steps


def _tools_answered_differently(old: Execution, new: Execution) -> bool:
    """Return whether the first difference between the runs is a tool's answer."""
    steps = zip(old.steps or (), new.steps or (), strict=False)
    first = next(((one, other) for one, other in steps if one != other), None)
    return first is not None and all(step.startswith("r") for step in first)


def _broke(execution: Execution) -> bool:
    return execution.error is not None and execution.error.kind not in ("judge", "quota", "metric_crashed")


def _judged(execution: Execution) -> bool:
    return any(judge_name(result.details) for result in execution.scores.values())


def _names(names: Any) -> str:
    if not isinstance(names, list):
        return str(names)
    return few(map(str, names), 5) or "none"
