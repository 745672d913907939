"""Why two executions of a case may differ: which of what determined them, and of what came between, is not the same.

What cannot have had an effect is not named: where the agent said, called and was told the same, no change of its
files is a cause.
"""

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

from workbench.agents.python_source import parse_source
from workbench.counting import counted
from workbench.history.objects import read_object
from workbench.history.summary import Row, Summary

CauseKind: TypeAlias = Literal[
    "prompt", "code", "model", "versions", "criteria", "expected", "tool_output", "judge", "agent"
]
FileKind: TypeAlias = Literal["prompt", "code", "model"]
_LONGEST = 5000
"""Lines of a file that are compared line by line."""
_LINES = 40
_CODE = {".py"}


@dataclass(frozen=True, slots=True)
class Cause:
    """`what` says in words what differs; for files, which."""

    kind: CauseKind
    what: str


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of an agent that differs between two runs: `lines` as a unified diff without its heads, [] where its
    content is not kept."""

    agent: str
    path: str
    kind: FileKind
    lines: tuple[str, ...] = ()


def changed_files(before: Summary, after: Summary, state: Path) -> dict[str, list[ChangedFile]]:
    """Agent → its files that differ. Agents of which one of the runs does not know the files are left out."""
    found: dict[str, list[ChangedFile]] = {}
    for agent, old in before.sources.items():
        new = after.sources.get(agent)
        if not isinstance(old, dict) or not isinstance(new, dict) or not old or not new:
            continue
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        models = _models(before, agent), _models(after, agent)
        found[agent] = [_changed(agent, path, old.get(path), new.get(path), state, models) for path in paths]
    return found


def causes(
    before: tuple[Summary, Row], after: tuple[Summary, Row], files: dict[str, list[ChangedFile]]
) -> Iterator[Cause]:
    """Of one case in two runs; `files` is what `changed_files` found."""
    (old_run, old), (new_run, new) = before, after
    if _differ(old, new, "expected"):
        yield Cause("expected", "what is expected of the case")
    judged_alike = not (_differ(old, new, "criteria") or _differ(old, new, "settings") or _thresholds(old, new))
    if not judged_alike:
        yield Cause("criteria", _criteria(old, new))
    named = list(_judges(old, new))
    yield from named
    if _differ(old, new, "said") or _did_otherwise(old, new) or _broke(old) != _broke(new):
        yield from _of_the_agent(old_run, old, new_run, new, files)
    elif judged_alike and not named and not _differ(old, new, "expected") and _judged(new):
        yield Cause("judge", "the same transcript was judged differently")


def describe(before: Summary, after: Summary) -> Iterator[str]:
    """What differs between the runs as a whole, in words, without files."""
    for name in sorted({*before.versions, *after.versions}):
        old, new = before.versions.get(name), after.versions.get(name)
        if before.versions and after.versions and old != new:
            yield f"{name} {old or 'none'} -> {new or 'none'}"
    for agent in sorted({*before.models} & {*after.models}):
        if before.models[agent] != after.models[agent]:
            yield f"models of {agent}: {_names(before.models[agent])} -> {_names(after.models[agent])}"
    if before.git and after.git and before.git.get("commit") != after.git.get("commit"):
        yield f"commit {str(before.git.get('commit'))[:12]} -> {str(after.git.get('commit'))[:12]}"


def _of_the_agent(
    old_run: Summary, old: Row, new_run: Summary, new: Row, files: dict[str, list[ChangedFile]]
) -> Iterator[Cause]:
    agent, found = str(new["ref"][0]), False
    for kind in ("prompt", "code"):
        paths = [file.path for file in files.get(agent, ()) if file.kind == kind]
        if paths:
            found = True
            yield Cause("prompt" if kind == "prompt" else "code", _names(paths))
    if agent in old_run.models and agent in new_run.models and old_run.models[agent] != new_run.models[agent]:
        found = True
        yield Cause("model", f"{_names(old_run.models[agent])} -> {_names(new_run.models[agent])}")
    if old_run.versions and new_run.versions and old_run.versions != new_run.versions:
        names = {*old_run.versions, *new_run.versions}
        found = True
        yield Cause(
            "versions",
            _names(sorted(name for name in names if old_run.versions.get(name) != new_run.versions.get(name))),
        )
    if _told_otherwise(old, new):
        found = True
        yield Cause("tool_output", "the same tool calls were answered differently")
    known = agent in files
    if not found and not _differ(old, new, "expected"):
        why = "nothing that is kept of it differs" if known else "its files are not known of both runs"
        yield Cause("agent", f"the agent did something else; {why}")


def _judges(old: Row, new: Row) -> Iterator[Cause]:
    named = False
    for name, metric in new["metrics"].items():
        before = old["metrics"].get(name)
        if before is not None and before[4] and metric[4] and before[4] != metric[4]:
            named = True
            yield Cause("judge", f"{name}: {before[4]} -> {metric[4]}")
    if not named and _differ(old, new, "judges"):
        yield Cause("judge", "options of the judges")


def _criteria(old: Row, new: Row) -> str:
    changed = _thresholds(old, new)
    added = [f"{name} is new" for name in new["metrics"] if name not in old["metrics"]]
    gone = [f"{name} is gone" for name in old["metrics"] if name not in new["metrics"]]
    return ", ".join([*changed, *added, *gone]) or "settings of the criteria"


def _thresholds(old: Row, new: Row) -> list[str]:
    return [
        f"{name} threshold {old['metrics'][name][1]} -> {metric[1]}"
        for name, metric in new["metrics"].items()
        if name in old["metrics"] and old["metrics"][name][1] != metric[1]
    ]


def _changed(agent: str, path: str, old: Any, new: Any, state: Path, models: tuple[set[str], set[str]]) -> ChangedFile:
    before, after = _content(old, state), _content(new, state)
    kind = _kind(path, before, after, models)
    if before is None or after is None:
        return ChangedFile(agent, path, kind)
    one, other = before.splitlines(), after.splitlines()
    if max(len(one), len(other)) > _LONGEST:
        return ChangedFile(agent, path, kind)
    lines = [line for line in difflib.unified_diff(one, other, n=0, lineterm="") if line[:3] not in ("---", "+++")]
    more = [f"… {counted(len(lines) - _LINES, 'more line')}"] if len(lines) > _LINES else []
    return ChangedFile(agent, path, kind, (*lines[:_LINES], *more))


def _content(digest: Any, state: Path) -> str | None:
    """The content; that of a file that was not there is empty."""
    if digest is None:
        return ""
    content = read_object(state, digest) if isinstance(digest, str) else None
    return None if content is None else content.decode("utf-8", "replace")


def _models(run: Summary, agent: str) -> set[str]:
    models = run.models.get(agent)
    return {str(name) for name in models} if isinstance(models, list) else set()


def _kind(path: str, before: str | None, after: str | None, models: tuple[set[str], set[str]]) -> FileKind:
    """A file in which only the names of models differ tells of another model. A prompt is what is no Python, and Python
    of which only texts differ."""
    names = models[0] | models[1]
    if before and after and models[0] != models[1] and _without(before, names) == _without(after, names):
        return "model"
    if PurePosixPath(path).suffix not in _CODE:
        return "prompt"
    if not before or not after:
        return "code"
    try:
        return "prompt" if _without_texts(before) == _without_texts(after) else "code"
    except (SyntaxError, ValueError, RecursionError):
        return "code"


def _without(text: str, names: set[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "\0")
    return text


def _without_texts(source: str) -> str:
    tree = parse_source(source.encode("utf-8", "surrogatepass"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _differ(old: Row, new: Row, name: str) -> bool:
    """Whether both are known, made alike, and not the same."""
    one, other = str(old.get(name) or ""), str(new.get(name) or "")
    return bool(one and other) and (":" in one) == (":" in other) and one != other


def _did_otherwise(old: Row, new: Row) -> bool:
    """Whether it called otherwise, or was answered otherwise."""
    one, other = old.get("steps"), new.get("steps")
    return one is not None and other is not None and one != other


def _told_otherwise(old: Row, new: Row) -> bool:
    """Whether the first thing that went otherwise is what a tool answered: all before it was the same."""
    steps = zip(old.get("steps") or (), new.get("steps") or (), strict=False)
    first = next(((one, other) for one, other in steps if one != other), None)
    return first is not None and all(step.startswith("r") for step in first)


def _broke(row: Row) -> bool:
    return row["error"] is not None and row["error"][0] not in ("judge", "quota", "metric_crashed")


def _judged(row: Row) -> bool:
    return any(metric[4] for metric in row["metrics"].values())


def _names(names: Any) -> str:
    if not isinstance(names, list):
        return str(names)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (", ".join(map(str, names[:5])) or "none") + more
