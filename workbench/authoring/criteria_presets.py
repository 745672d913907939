"""Adding a criterion, guided: what it costs and needs, and sets of criteria for a purpose.

python -m workbench.authoring.criteria_presets prints the list of presets in docs/criteria-editing.md.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from workbench.authoring.criteria_change import Content, first_threshold
from workbench.authoring.criteria_form import SIMULATOR
from workbench.counting import counted
from workbench.json_values import mapping
from workbench.judge.base import DEFAULT_SAMPLES
from workbench.metrics.description import CriterionDescription
from workbench.metrics.registry import known
from workbench.model.spelling import key_in


@dataclass(frozen=True, slots=True)
class Preset:
    """Criteria for a purpose, each with the value that its description has for it; `help` says when to take it."""

    name: str
    help: str
    simulator: Mapping[str, Any] | None = None

    @property
    def criteria(self) -> dict[str, Any]:
        """The criteria and their values."""
        return {name: info.presets[self.name] for name, info in known().items() if self.name in info.presets}

    @property
    def cost(self) -> str:
        """What a turn costs, in words."""
        infos = [known()[name] for name in self.criteria]
        return "; ".join(f"{info.title}: {cost(info)}" for info in infos if info.asks is not None) or cost(infos[0])


PRESETS = (
    Preset(
        "regression in CI",
        "After each change: did it call the same tools, and say much the same? No judge, no key, the same verdict "
        "every time.",
    ),
    Preset(
        "functional correctness",
        "Is the answer right, however it is worded, and were the needed tools called? For cases with a reference.",
    ),
    Preset(
        "quality for outside users",
        "Before the public meets the agent: good answers by your rubrics, nothing made up, nothing harmful.",
    ),
    Preset(
        "tool-heavy agents",
        "When the work is in the calls: the expected ones in any order, and rubrics for what all good ways share.",
    ),
    Preset(
        "simulated users",
        "For cases with a scenario: the course of the conversation, nothing made up, and whether the simulated user "
        "kept to its plan.",
        MappingProxyType({"max_allowed_invocations": 10}),
    ),
)


def with_preset(content: Content, preset: Preset, *, instead: bool = False) -> tuple[Content, list[str]]:
    """The content with the criteria of a preset that it lacks, and their names; those that it has stay as they are.
    `instead`: what stands there are the defaults that nobody wrote, and the preset takes their place."""
    criteria = {} if instead else mapping(content.get("criteria"))
    new = [name for name in preset.criteria if name not in criteria]
    changed = {**content, "criteria": {**criteria, **{name: preset.criteria[name] for name in new}}}
    if preset.simulator is not None and key_in(changed, SIMULATOR) is None:
        changed[SIMULATOR] = dict(preset.simulator)
        new.append(SIMULATOR)
    return changed, new


def cost(info: CriterionDescription, samples: int = DEFAULT_SAMPLES) -> str:
    """Who is asked how often, in words, where each question is asked so many times."""
    asks = info.asks
    if asks is None:
        return "no calls"
    if asks.who == "service":
        return f"1 call of Google's evaluation service a {asks.about}"
    if not asks.votes:
        return f"{counted(asks.questions, 'judge call')} a {asks.about}"
    return f"up to {samples} judge calls a {asks.about}" if samples > 1 else f"1 judge call a {asks.about}"


def needs(info: CriterionDescription) -> str:
    """What must be there for it, in words; "nothing but the transcript" where that is all."""
    found = [
        word
        for needed, word in (
            (info.needs_reference, "an expected conversation (reference)"),
            (bool(info.rubric_type), "rubrics, here or in the cases"),
            (info.needs_judge, "a judge (a model's key, or heuristic)"),
            (info.needs_service, "a Google Cloud project"),
            (info.scenarios == "only", "cases with a scenario"),
        )
        if needed
    ]
    words = ", ".join(found) or "nothing but the transcript"
    return f"{words}; not for scenarios" if info.scenarios == "no" else words


def guide(info: CriterionDescription) -> str:
    """All that helps to decide whether to take a criterion."""
    lines = [info.measures, info.when_to_use, f"Costs {cost(info)}. Needs {needs(info)}."]
    if not info.supported:
        lines.append("This version cannot score it yet: its cases are NOT EVALUATED.")
    return "\n".join(lines)


def proposed(name: str) -> str:
    """The threshold it would begin with, in words."""
    return f"≥ {first_threshold(name):g}"


def presets_list() -> str:
    """Return the presets as a Markdown list: who is asked, and the criteria with threshold and match type."""
    lines = []
    for preset in PRESETS:
        who = {info.asks.who: None for name in preset.criteria if (info := known()[name]).asks is not None}
        asked = [_WHO_IS_ASKED[one] for one in who]
        items = [_in_words(name, value) for name, value in preset.criteria.items()]
        if preset.simulator is not None:
            asked.append("the simulated user's model")
            items += [f"`{key}` {value}" for key, value in preset.simulator.items()]
        lines.append(f"- **{preset.name}** asks {' and '.join(asked) or 'nobody'}.")
        lines += [f"  - {item}" for item in items]
    return "\n".join(lines) + "\n"


_WHO_IS_ASKED = {"judge": "a judge", "service": "Google's evaluation service"}


def _in_words(name: str, value: Any) -> str:
    options = value if isinstance(value, dict) else {"threshold": value}
    return " ".join([f"`{name}`", *(str(item) for item in options.values() if not isinstance(item, list))])


if __name__ == "__main__":
    sys.stdout.write(presets_list())
