"""The criteria of the next run: what the files say, and what the user changed for one run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.counting import exact
from workbench.ui.judge_setting import JudgeSetting, judge_setting, said, with_judge

if TYPE_CHECKING:
    from workbench.agents.criteria_choice import CriteriaChoice
    from workbench.model.criteria import CriteriaConfig, Criterion

STEP = 0.05
MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
_DEFAULT_THRESHOLD = 0.8


@dataclass(frozen=True, slots=True)
class Setting:
    """One criterion as it will be used. `in_file` says whether the config (or the defaults) has it; `match_type` and
    `judge` are None for criteria that have none; `changed` whether it differs from the file."""

    name: str
    on: bool
    threshold: float
    match_type: str | None
    in_file: bool
    changed: bool = False
    judge: JudgeSetting | None = None


class Draft:
    """Changes by config file (None: the defaults) and criterion."""

    def __init__(self) -> None:
        self._changes: dict[tuple[object, str], Setting] = {}

    def copy(self) -> "Draft":
        """Return a draft with the same changes, to try others out."""
        other = Draft()
        other.take(self)
        return other

    def take(self, other: "Draft") -> None:
        """Replace the changes by those of another draft."""
        self._changes = dict(other._changes)

    @property
    def empty(self) -> bool:
        """Whether the files hold as they are."""
        return not self._changes

    def settings(self, config: "CriteriaConfig") -> list[Setting]:
        """The criteria of a config in the order of its file, then the others that could be added, which are off."""
        from workbench.metrics.registry import known

        own = [_setting(criterion) for criterion in config.criteria]
        names = {setting.name for setting in own} | set(config.custom_metrics)
        more = [
            Setting(
                info.name,
                False,
                _DEFAULT_THRESHOLD,
                "EXACT" if _has_match_type(info.name) else None,
                False,
                judge=judge_setting(info.name, {}),
            )
            for info in known().values()
            if info.supported and not info.informational and info.name not in names
        ]
        return [self._changes.get((config.path, setting.name), setting) for setting in (*own, *more)]

    def change(self, config: "CriteriaConfig", setting: Setting) -> None:
        """Take a setting for the next run. One that equals the file is no change."""
        key = (config.path, setting.name)
        self._changes.pop(key, None)
        original = next(item for item in self.settings(config) if item.name == setting.name)
        plain = replace(setting, changed=False)
        if plain != original and (plain.on or original.on):
            self._changes[key] = replace(setting, changed=True)

    def changed(self, config: "CriteriaConfig") -> list[Setting]:
        """What was changed for a config."""
        return [setting for setting in self.settings(config) if setting.changed]

    def forget(self, config: "CriteriaConfig") -> None:
        """Takes back the changes for a config: they are saved."""
        for key in [key for key in self._changes if key[0] == config.path]:
            del self._changes[key]

    def used(self, other: "Draft") -> None:
        """Drop the changes that a run was made with; what was changed since is for the next one."""
        for key, setting in other._changes.items():
            if self._changes.get(key) == setting:
                del self._changes[key]

    def clear(self) -> None:
        """Back to the files."""
        self._changes.clear()

    def apply(self, choice: "CriteriaChoice") -> "CriteriaChoice":
        """The criteria with the changes made, and the reason saying which."""
        config = choice.config
        changed = self.changed(config) if self._changes else []
        if not changed:
            return choice
        by_name = {criterion.name: criterion for criterion in config.criteria}
        criteria = [
            _criterion(by_name.get(setting.name), setting) if setting.changed else by_name[setting.name]
            for setting in self.settings(config)
            if setting.on
        ]
        words = tuple(_in_words(setting, by_name.get(setting.name)) for setting in changed)
        return replace(
            choice,
            config=replace(config, criteria=tuple(criteria), has_criteria=True),
            reason=f"{choice.reason}; changed for this run: {', '.join(words)}",
            changed=words,
        )


def raised(setting: Setting, steps: int) -> Setting:
    """The threshold moved by steps of 0.05, on the grid, never below 0."""
    value = round(round(setting.threshold / STEP) + steps, 6) * STEP
    return replace(setting, threshold=max(0.0, round(value, 4)), on=True)


def next_match_type(setting: Setting) -> Setting:
    """The next of the three ways to compare trajectories; the same where there is none."""
    if setting.match_type is None:
        return setting
    place = MATCH_TYPES.index(setting.match_type) if setting.match_type in MATCH_TYPES else -1
    return replace(setting, match_type=MATCH_TYPES[(place + 1) % len(MATCH_TYPES)], on=True)


def configs(choices: "Iterable[CriteriaChoice]") -> "list[CriteriaChoice]":
    """Each config once, in the order in which they come."""
    found: dict[object, CriteriaChoice] = {}
    for choice in choices:
        found.setdefault(choice.config.path, choice)
    return list(found.values())


def _setting(criterion: "Criterion") -> Setting:
    match_type = None
    if _has_match_type(criterion.name):
        match_type = str(criterion.options.get("match_type") or "EXACT").upper()
        # ADK takes the numbers 0, 1, 2 as well.
        match_type = dict(zip("012", MATCH_TYPES, strict=True)).get(match_type, match_type)
    judge = judge_setting(criterion.name, criterion.options)
    return Setting(criterion.name, True, criterion.threshold, match_type, True, judge=judge)


def _has_match_type(name: str) -> bool:
    from workbench.metrics.registry import known

    info = known().get(name)
    return info is not None and "match_type" in info.option_names


def _criterion(original: "Criterion | None", setting: Setting) -> "Criterion":
    from workbench.model.criteria import Criterion

    options: dict[str, Any] = dict(original.options) if original else {}
    value: Any = setting.threshold
    before: Mapping[str, Any] = original.value if original and isinstance(original.value, dict) else {}
    matches = setting.match_type is not None and (before or setting.match_type != "EXACT")
    if matches:
        options["match_type"] = setting.match_type
    if before or matches:
        kept = {key: item for key, item in before.items() if key != "matchType"}
        value = {**kept, "threshold": setting.threshold, **({"match_type": setting.match_type} if matches else {})}
    told = said(setting.judge, judge_setting(setting.name, options)) if setting.judge is not None else {}
    if told:
        value = with_judge(value if isinstance(value, dict) else {"threshold": setting.threshold}, told)
        options = {**options, "judge_model_options": {**(options.get("judge_model_options") or {}), **told}}
    return Criterion(setting.name, setting.threshold, value, options)


def _in_words(setting: Setting, original: "Criterion | None") -> str:
    """Return what was changed, such as `response_match_score ≥ 0.3 instead of 0.8`."""
    if not setting.on:
        return f"{setting.name} off"
    reached = f"{setting.name} ≥ {exact(setting.threshold)}"
    before = None if original is None else _setting(original)
    if before is None:
        return " ".join(["added", reached, setting.match_type or str(setting.judge or "")]).strip()
    told = [reached if setting.threshold == before.threshold else f"{reached} instead of {exact(before.threshold)}"]
    if setting.match_type != before.match_type:
        told.append(f"{setting.match_type} instead of {before.match_type}")
    if setting.judge != before.judge:
        told.append(f"judge {setting.judge} instead of {before.judge}")
    return ", ".join(told)
