"""Adding a criterion, guided: what it costs and needs, and sets of criteria for a purpose."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from workbench.authoring.criteria_change import Content, first_threshold
from workbench.authoring.criteria_form import SIMULATOR
from workbench.authoring.spelling import key_in
from workbench.judge.base import DEFAULT_SAMPLES
from workbench.metrics.criteria_known import CriterionInfo
from workbench.metrics.registry import known


@dataclass(frozen=True, slots=True)
class Preset:
    """Criteria for a purpose, with their values; `help` says when to take it."""

    name: str
    help: str
    criteria: Mapping[str, Any]
    simulator: Mapping[str, Any] | None = None

    @property
    def cost(self) -> str:
        """What a turn costs, in words."""
        infos = [known()[name] for name in self.criteria]
        judged = [cost(info) for info in infos if info.needs_judge or info.needs_service]
        return "; ".join(f"{info.title}: {cost(info)}" for info in infos if cost(info) in judged) or cost(infos[0])


def _rubric(name: str, text: str, kind: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": text}, "type": kind}


_ANSWER = {
    "threshold": 0.8,
    "rubrics": [
        _rubric("complete", "The answer deals with everything that the user asked for.", "FINAL_RESPONSE_QUALITY"),
        _rubric("clear", "Somebody from outside can understand the answer and act on it.", "FINAL_RESPONSE_QUALITY"),
    ],
}
_TOOLS = {
    "threshold": 0.8,
    "rubrics": [
        _rubric("needed", "Every tool that the question needs is called, before the answer.", "TOOL_USE_QUALITY"),
        _rubric("sound_arguments", "The arguments say what the user said, and make up nothing.", "TOOL_USE_QUALITY"),
        _rubric("no_detours", "No tool is called again with the same arguments.", "TOOL_USE_QUALITY"),
    ],
}
_COURSE = {
    "threshold": 0.8,
    "rubrics": [
        _rubric("goal", "At the end the user has what they came for, or knows why not.", "TRAJECTORY_QUALITY"),
        _rubric("no_repeats", "The agent asks for nothing that the user has said already.", "TRAJECTORY_QUALITY"),
    ],
}
PRESETS = (
    Preset(
        "regression in CI",
        "After each change: did it call the same tools, and say much the same? No judge, no key, the same verdict "
        "every time.",
        MappingProxyType({"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}),
    ),
    Preset(
        "functional correctness",
        "Is the answer right, however it is worded, and were the needed tools called? For cases with a reference.",
        MappingProxyType(
            {
                "final_response_match_v2": 0.8,
                "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"},
            }
        ),
    ),
    Preset(
        "quality for outside users",
        "Before the public meets the agent: good answers by your rubrics, nothing made up, nothing harmful.",
        MappingProxyType(
            {"rubric_based_final_response_quality_v1": _ANSWER, "hallucinations_v1": 0.8, "safety_v1": 0.8}
        ),
    ),
    Preset(
        "tool-heavy agents",
        "When the work is in the calls: the expected ones in any order, and rubrics for what all good ways share.",
        MappingProxyType(
            {
                "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "ANY_ORDER"},
                "rubric_based_tool_use_quality_v1": _TOOLS,
            }
        ),
    ),
    Preset(
        "simulated users",
        "For cases with a scenario: the course of the conversation, nothing made up, and whether the simulated user "
        "kept to its plan.",
        MappingProxyType(
            {
                "rubric_based_multi_turn_trajectory_quality_v1": _COURSE,
                "hallucinations_v1": 0.8,
                "per_turn_user_simulator_quality_v1": 0.8,
            }
        ),
        MappingProxyType({"max_allowed_invocations": 10}),
    ),
)


def with_preset(content: Content, preset: Preset, *, instead: bool = False) -> tuple[Content, list[str]]:
    """The content with the criteria of a preset that it lacks, and their names; those that it has stay as they are.
    `instead`: what stands there are the defaults that nobody wrote, and the preset takes their place."""
    changed = copy.deepcopy(content)
    criteria = {} if instead or not isinstance(changed.get("criteria"), dict) else changed["criteria"]
    new = [name for name in preset.criteria if name not in criteria]
    criteria |= {name: copy.deepcopy(preset.criteria[name]) for name in new}
    changed["criteria"] = criteria
    if preset.simulator is not None and key_in(changed, SIMULATOR) is None:
        changed[SIMULATOR] = dict(preset.simulator)
        new.append(SIMULATOR)
    return changed, new


def cost(info: CriterionInfo, samples: int = DEFAULT_SAMPLES) -> str:
    """Who is asked how often, in words, where each question is asked so many times."""
    asked = f"up to {samples} judge calls" if samples > 1 else "1 judge call"
    if info.needs_service:
        return f"1 call of Google's evaluation service a {'conversation' if info.once else 'turn'}"
    if not info.needs_judge:
        return "no calls"
    if info.name == "hallucinations_v1":
        return "2 judge calls a text: a turn's answer, and what was said on the way if you ask for it"
    if info.once:
        return f"{asked} a conversation"
    if info.name == "per_turn_user_simulator_quality_v1":
        return f"{asked} a message of the simulated user"
    return f"{asked} a turn"


def needs(info: CriterionInfo) -> str:
    """What must be there for it, in words; "nothing but the transcript" where that is all."""
    found = [
        word
        for needed, word in (
            (info.needs_reference, "an expected conversation (reference)"),
            (info.needs_rubrics, "rubrics, here or in the cases"),
            (info.needs_judge, "a judge (a model's key, or heuristic)"),
            (info.needs_service, "a Google Cloud project"),
            (info.scenarios == "only", "cases with a scenario"),
        )
        if needed
    ]
    words = ", ".join(found) or "nothing but the transcript"
    return f"{words}; not for scenarios" if info.scenarios == "no" else words


def guide(info: CriterionInfo) -> str:
    """All that helps to decide whether to take a criterion."""
    lines = [info.measures, info.when_to_use, f"Costs {cost(info)}. Needs {needs(info)}."]
    if not info.supported:
        lines.append("This version cannot score it yet: its cases are NOT EVALUATED.")
    return "\n".join(lines)


def proposed(name: str) -> str:
    """The threshold it would begin with, in words."""
    return f"≥ {first_threshold(name):g}"
