"""Edited criteria for the next run, on top of what the files say."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.text.counting import exact

if TYPE_CHECKING:
    from workbench.agents.workspace import CriteriaChoice
    from workbench.files.criteria import CriteriaConfig

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Edit:
    """The content of a config when it was edited, and its edited content."""

    before: Content
    after: Content


class Draft:
    """Edited contents by config file (None: the defaults), for the next run only."""

    def __init__(self) -> None:
        self._edits: dict[Path | None, _Edit] = {}

    def copy(self) -> "Draft":
        """Return a draft with the same edits."""
        other = Draft()
        other._edits = dict(self._edits)
        return other

    @property
    def empty(self) -> bool:
        """Whether nothing was edited."""
        return not self._edits

    def change(self, path: Path | None, before: Content, after: Content) -> None:
        """Set the content for the next run. A content equal to the file's removes the edit."""
        self._edits.pop(path, None)
        if after != before:
            self._edits[path] = _Edit(before, after)

    def forget(self, path: Path | None) -> None:
        """Drop the edit of a config because its file has it now."""
        self._edits.pop(path, None)

    def used(self, other: "Draft") -> None:
        """Drop the edits that a run was made with. Edits made since then apply to the next run."""
        for path, edit in other._edits.items():
            if self._edits.get(path) == edit:
                del self._edits[path]

    def content(self, path: Path | None, now: Content) -> Content:
        """Return the content of a config for the next run. `now` is its content in the file."""
        from workbench.editing.criteria_change import merged

        edit = self._edits.get(path)
        return now if edit is None else merged(edit.before, now, edit.after)

    def apply(self, choice: "CriteriaChoice") -> "CriteriaChoice":
        """Return the criteria of the next run. Their reason names the edits."""
        from workbench.files.criteria import parse_config
        from workbench.files.metrics_config import metrics_of, with_metrics

        config = choice.config
        if config.edited_file not in self._edits:
            return choice
        now = _content_of(config)
        content = self.content(config.edited_file, now)
        words = tuple(_in_words(now, content))
        if not words:
            return choice
        edited = parse_config(config.path or Path(), json.dumps(content).encode())
        if config.thresholds_file is not None:
            edited = with_metrics(edited, metrics_of(config), config.thresholds_file)
        return replace(
            choice,
            # Faults keep their places in the file.
            config=replace(edited, path=config.path, faults=config.faults, tree=config.tree, has_criteria=True),
            reason=f"{choice.reason}; changed for this run: {', '.join(words)}",
            changed=words,
        )


def _content_of(config: "CriteriaConfig") -> Content:
    """Return a config's content as it was read, with the default criteria if it names none."""
    content = config.tree[0].value() if config.tree is not None else {}
    named = content if isinstance(content, dict) else {}
    if config.has_criteria and "criteria" in named:
        return named
    given = (criterion for criterion in config.criteria if not criterion.is_informational)
    return {**named, "criteria": {criterion.name: criterion.value for criterion in given}}


def _in_words(before: Content, after: Content) -> Iterator[str]:
    """Yield the edits as text, such as `response_match_score ≥ 0.3 instead of 0.8`."""
    from workbench.editing.criteria_change import changed_names

    old, new = before.get("criteria"), after.get("criteria")
    old, new = (old if isinstance(old, dict) else {}), (new if isinstance(new, dict) else {})
    for name in changed_names(before, after):
        if name in new:
            yield _criterion_in_words(name, _values(old[name]) if name in old else None, _values(new[name]))
        else:
            yield f"{name} off" if name in old else name


def _criterion_in_words(name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    from workbench.criteria.registry import descriptions

    parts = [f"{name} ≥ {_shown(after.get('threshold'))}"]
    if before is None:
        parts[0] = f"added {parts[0]}"
    elif before.get("threshold") != after.get("threshold"):
        parts[0] += f" instead of {_shown(before.get('threshold'))}"
    info = descriptions().get(name)
    defaults = info.defaults() if info is not None else {}
    then = {**defaults, **(before or {})}
    for key in {**then, **after}:
        now = after.get(key, defaults.get(key))
        if key != "threshold" and then.get(key) != now:
            parts.append(f"{key} {_shown(now)}" + (f" instead of {_shown(then.get(key))}" if before else ""))
    return ", ".join(parts)


def _values(criterion: Any) -> dict[str, Any]:
    """Return a criterion's threshold and options by name, including those of its judge."""
    from workbench.criteria.description import JUDGE
    from workbench.files.faults import snake

    if not isinstance(criterion, dict):
        return {"threshold": criterion}
    values = {snake(key): value for key, value in criterion.items()}
    judge = values.pop(JUDGE, None)
    return {**values, **({snake(key): value for key, value in judge.items()} if isinstance(judge, dict) else {})}


def _shown(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return exact(float(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
