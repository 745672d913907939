"""Help for adding criteria: their costs and needs, and presets for common purposes.

`python -m workbench.editing.criteria_presets` prints the list of presets in docs/criteria-editing.md.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from workbench.criteria.description import CriterionDescription
from workbench.criteria.registry import descriptions
from workbench.editing.criteria_change import Content, first_threshold
from workbench.editing.criteria_form import SIMULATOR
from workbench.files.spelling import key_in
from workbench.judges.base import DEFAULT_SAMPLES
from workbench.text.counting import counted
from workbench.text.json_values import mapping


@dataclass(frozen=True, slots=True)
class Preset:
    """Criteria for a purpose, with values from their descriptions. `help` says when to use it."""

    name: str
    help: str
    simulator: Mapping[str, Any] | None = None

    @property
    def criteria(self) -> dict[str, Any]:
        """The criteria and their values."""
        return {name: info.presets[self.name] for name, info in descriptions().items() if self.name in info.presets}

    @property
    def cost(self) -> str:
        """Calls per turn, as text."""
        infos = [descriptions()[name] for name in self.criteria]
        return "; ".join(f"{info.title}: {cost(info)}" for info in infos if info.asks is not None) or cost(infos[0])


PRESETS = (
    Preset(
        "regression in CI",
        "After each change: does the agent call the same tools and give similar answers? Needs no judge and no key; "
        "verdicts are deterministic.",
    ),
    Preset(
        "functional correctness",
        "Is the answer correct, in any wording, and did the agent call the right tools? For cases with a reference.",
    ),
    Preset(
        "quality for outside users",
        "Before a public release: good answers by your rubrics, no hallucinations, nothing harmful.",
    ),
    Preset(
        "tool-heavy agents",
        "For agents that mainly call tools: expected calls in any order, and rubrics for good tool use.",
    ),
    Preset(
        "simulated users",
        "For cases with a scenario: conversation quality, no hallucinations, and a simulated user that follows its "
        "plan.",
        MappingProxyType({"max_allowed_invocations": 10}),
    ),
)


def with_preset(content: Content, preset: Preset, *, instead: bool = False) -> tuple[Content, list[str]]:
    """Return the content with the preset's missing criteria, and their names. Existing criteria stay.

    With `instead`, the preset replaces the criteria: they are unwritten defaults.
    """
    criteria = {} if instead else mapping(content.get("criteria"))
    new = [name for name in preset.criteria if name not in criteria]
    changed = {**content, "criteria": {**criteria, **{name: preset.criteria[name] for name in new}}}
    if preset.simulator is not None and key_in(changed, SIMULATOR) is None:
        changed[SIMULATOR] = dict(preset.simulator)
        new.append(SIMULATOR)
    return changed, new


def cost(info: CriterionDescription, samples: int = DEFAULT_SAMPLES) -> str:
    """Return who is asked, and how often, as text.

    `samples` is the number of votes per question.
    """
    asks = info.asks
    if asks is None:
        return "no calls"
    if asks.who == "service":
        return f"1 call of Google's evaluation service per {asks.about}"
    if not asks.votes:
        return f"{counted(asks.questions, 'judge call')} per {asks.about}"
    return f"up to {samples} judge calls per {asks.about}" if samples > 1 else f"1 judge call per {asks.about}"


def needs(info: CriterionDescription) -> str:
    """Return the requirements of a criterion as text."""
    found = [
        word
        for needed, word in (
            (info.needs_reference, "a reference"),
            (bool(info.rubric_type), "rubrics, here or in the cases"),
            (info.needs_judge, "a judge (a model with a key, or a Python function)"),
            (info.needs_service, "a Google Cloud project"),
            (info.scenarios == "only", "cases with a scenario"),
        )
        if needed
    ]
    words = ", ".join(found) or "only the transcript"
    return f"{words}; not for scenarios" if info.scenarios == "no" else words


def guide(info: CriterionDescription) -> str:
    """Return the facts that help to decide on a criterion."""
    lines = [info.measures, info.when_to_use, f"Cost: {cost(info)}. Needs {needs(info)}."]
    if not info.supported:
        lines.append("Not supported yet: its cases are NOT EVALUATED.")
    return "\n".join(lines)


def proposed(name: str) -> str:
    """Return the first threshold of a new criterion, as text."""
    return f"≥ {first_threshold(name):g}"


def presets_list() -> str:
    """Return the presets as a Markdown list: who is asked, and the criteria with threshold and match type."""
    lines = []
    for preset in PRESETS:
        who = {info.asks.who: None for name in preset.criteria if (info := descriptions()[name]).asks is not None}
        answered_by = [_ANSWERED_BY[one] for one in who]
        items = [_in_words(name, value) for name, value in preset.criteria.items()]
        if preset.simulator is not None:
            answered_by.append("the simulated user's model")
            items += [f"`{key}` {value}" for key, value in preset.simulator.items()]
        lines.append(f"- **{preset.name}** asks {' and '.join(answered_by) or 'no judge'}.")
        lines += [f"  - {item}" for item in items]
    return "\n".join(lines) + "\n"


_ANSWERED_BY = {"judge": "a judge", "service": "Google's evaluation service"}


def _in_words(name: str, value: Any) -> str:
    options = value if isinstance(value, dict) else {"threshold": value}
    return " ".join([f"`{name}`", *(str(item) for item in options.values() if not isinstance(item, list))])


if __name__ == "__main__":
    sys.stdout.write(presets_list())
