"""The options of the next runs: edited criteria, recordings, and the place."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from workbench.files.run_options import LOCALLY, PlaceChoice
from workbench.store.execution import Execution
from workbench.text.counting import exact
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item, Search, searching

if TYPE_CHECKING:
    from workbench.agents.workspace import CriteriaChoice
    from workbench.files.criteria import CriteriaConfig


Content = dict[str, Any]


class Draft:
    """Edits of criteria for the next run only, by config file. The key None is for the default criteria."""

    def __init__(self) -> None:
        self._edits: dict[Path | None, tuple[Content, Content]] = {}
        """The contents before and after the edit."""

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
        """Set the content for the next run. A content equal to the file's, also in its order, removes the edit."""
        self._edits.pop(path, None)
        if json.dumps(after) != json.dumps(before):
            self._edits[path] = before, after

    def forget(self, path: Path | None) -> None:
        """Drop the edit of a config, because it was saved to the file."""
        self._edits.pop(path, None)

    def drop_used(self, used: "Draft") -> None:
        """Drop the edits that a run `used`. Later edits apply to the next run."""
        for path, edit in used._edits.items():
            if json.dumps(self._edits.get(path)) == json.dumps(edit):
                del self._edits[path]

    def content(self, path: Path | None, now: Content) -> Content:
        """Return the content of a config for the next run: the file's content `now` with the edit merged into it."""
        from workbench.editing.criteria_change import merged

        if path not in self._edits:
            return now
        before, after = self._edits[path]
        return merged(before, now, after)

    def apply(self, choice: "CriteriaChoice") -> "CriteriaChoice":
        """Return the criteria of the next run. Their `reason` lists the edits. Without edits, return `choice`."""
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
    """Return a config's content, with the default criteria if it has no criteria."""
    content = config.tree[0].value() if config.tree is not None else {}
    named = content if isinstance(content, dict) else {}
    if config.has_criteria and "criteria" in named:
        return named
    given = (criterion for criterion in config.criteria if not criterion.is_informational)
    return {**named, "criteria": {criterion.name: criterion.value for criterion in given}}


def _in_words(before: Content, after: Content) -> Iterator[str]:
    """Yield a text for each edit, such as `response_match_score ≥ 0.3 instead of 0.8`."""
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


Mode: TypeAlias = Literal["", "tools", "all", "thaw"]
"""The calls that recordings answer: tools, all, or none ("" and `thaw`). `thaw` compares live calls with recordings."""
_MODES: tuple[Mode, ...] = ("", "tools", "all", "thaw")
_WORDS = {"": "off", "tools": "tools", "all": "tools and models", "thaw": "thaw"}
_HELP = {
    "": "agents call their tools and models",
    "tools": "tools are answered from the recordings",
    "all": "tools and models are answered from the recordings",
    "thaw": "runs live, and shows how the answers drifted from the recordings",
}


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """The use of recordings by the next runs. If `mode` is None, the project's mode in `project` applies."""

    mode: Mode | None = None
    live_on_miss: bool = False
    project: Mode = ""

    @property
    def effective(self) -> Mode:
        """The mode of the next run."""
        return self.project if self.mode is None else self.mode

    @property
    def next_mode(self) -> Mode:
        """The mode after the current one."""
        return _MODES[(_MODES.index(self.effective) + 1) % len(_MODES)]

    @property
    def label(self) -> str:
        """The mode as text, with its source if that is the project: `tools (pyproject.toml)`."""
        return _WORDS[self.effective] + (" (pyproject.toml)" if self.mode is None and self.project else "")

    @property
    def help(self) -> str:
        """An explanation of the mode, without a full stop."""
        return _HELP[self.effective]

    @property
    def on_miss_words(self) -> str:
        """The treatment of calls without a recording (`call live` or `error`), or "" if nothing is replayed."""
        if self.effective not in ("tools", "all"):
            return ""
        return "call live" if self.live_on_miss else "error"

    @property
    def for_bar(self) -> tuple[str, str]:
        """The mode as a long and a short text for the bar, or two "" if recordings are not used."""
        if self.effective in ("", "thaw"):
            return self.effective, self.effective
        words = f"frozen {self.effective}"
        return (f"{words}, live on a miss", f"{words}+live") if self.live_on_miss else (words, words)

    @property
    def for_chat(self) -> str:
        """A notice for the chat that its calls are live although runs are frozen, or "" if runs are live."""
        if self.effective not in ("tools", "all"):
            return ""
        where = " (pyproject.toml)" if self.mode is None else ""
        return f"live: this conversation really calls {_WORDS[self.effective]}, only runs are frozen{where}"

    def run_options(self) -> dict[str, Any]:
        """Return the keyword arguments of `RunOptions` for recordings."""
        if self.mode is None:
            return {"on_miss": "live"} if self.live_on_miss else {}
        if self.mode == "thaw":
            return {"frozen": "", "thaw": True}
        return {"frozen": self.mode, "on_miss": "live" if self.live_on_miss else "error"}


def lacks_recording(record: Execution | None) -> bool:
    """Return whether a case ended because its recording lacks a call or cannot be read."""
    error = record.error if record is not None else None
    return error is not None and error.kind in ("frozen_miss", "frozen_file")


_HERE = PlaceChoice()
_LONGEST_IN_BAR = 24
_ON_OTHERS = "Agents run there. Judges, limits, the budget and stored runs stay on this machine."


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The place of the next runs. If `chosen` is None, the project's place in `project` applies.

    `named` are the places that the project's settings give names to.
    """

    chosen: PlaceChoice | None = None
    project: PlaceChoice | None = None
    named: tuple[PlaceChoice, ...] = ()

    @property
    def label(self) -> str:
        """The place as safe text, with its source if that is the project: `local`, `cluster (pyproject.toml)`."""
        if self.chosen is None and self.project is not None:
            return f"{_name(self.project)} (pyproject.toml)"
        return _name(self.chosen or _HERE)

    @property
    def for_bar(self) -> str:
        """The place as text for the bar, such as `on cluster`, or "" for this machine."""
        effective = self.chosen or self.project or _HERE
        return "" if effective.is_local else f"on {one_line(_name(effective), limit=_LONGEST_IN_BAR)}"

    def run_options(self) -> dict[str, Any]:
        """Return the keyword arguments of `RunOptions` for the place."""
        return {} if self.chosen is None else {"place": self.chosen}

    def search(self) -> Search:
        """Return a search over the known places. The typed text is offered as a place, too."""
        known = [PlaceChoice(choice.name) for choice in self.named]
        items = [
            Item("local", _HERE, help="Agents run on this machine."),
            *(
                Item(_name(choice), mine, hint=one_line(choice.word, limit=40), help=_ON_OTHERS)
                for choice, mine in zip(self.named, known, strict=True)
            ),
        ]
        others = [one for one in (self.chosen, self.project) if one is not None and not one.is_local]
        items += [Item(_name(one), one, help=_ON_OTHERS) for one in others if not one.name and one not in known]
        find = searching(list(dict.fromkeys(items)))

        def search(query: str) -> list[Item]:
            found = list(find(query))
            if not query.strip() or query.strip() in {item.label for item in found}:
                return found
            return [_typed(query), *found] if ":" in query else [*found, _typed(query)]

        return search


def _typed(text: str) -> Item:
    word, label = text.strip(), one_line(text.strip(), limit=100)
    if len(word.split()) > 1 or word.startswith("-"):
        return Item(label, None, why_not="type one place, such as dask://host:8786")
    return Item(label, PlaceChoice(word), hint="use it", help=_ON_OTHERS)


def _name(choice: PlaceChoice) -> str:
    return one_line(choice.name or choice.word or LOCALLY, limit=100)
