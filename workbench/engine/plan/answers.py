"""Answers of models in a run, stored in case the run is interrupted.

A resumed run reuses them for the same requests.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.plan.secrets import Secrets
from workbench.events import CaseRef


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer in a case.

    `request` is a digest of the whole request. `responses` are ADK's LlmResponses as JSON text. None means that the
    previous answer to the same request was incomplete.
    """

    case: CaseRef
    agent: str
    request: str
    responses: tuple[str, ...] | None

    def frame(self) -> dict[str, Any]:
        """Return the frame for the worker (`docs/worker-protocol.md`)."""
        return {"op": "answered", "agent": self.agent, "asked": self.request, "responses": self.responses}


class AnswerStorage:
    """The file in which the workers of a run store answers. `environments` maps agent names to their environments."""

    def __init__(self, file: Path, environments: Mapping[str, Mapping[str, str]]) -> None:
        self._file = str(file.absolute())
        # Each worker learns only the secrets of its own environment.
        self._without = {name: Secrets([values]).markers for name, values in environments.items()}

    def spec(self, ref: CaseRef) -> dict[str, Any]:
        """Return the settings of a case on this machine for `workbench.agents.worker.answer_file`."""
        case = [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat]
        return {"file": self._file, "case": case, "without": self._without[ref.agent]}


def read(lines: Iterable[Mapping[str, Any]]) -> dict[CaseRef, list[Answer]]:
    """Return the reusable answers of each case, in their order. Other lines are ignored."""
    found: dict[CaseRef, list[Answer]] = {}
    for line in lines:
        try:
            agent, file, eval_set_id, eval_id, repeat = line["case"]
            case = CaseRef(_text(agent), _text(file), _text(eval_set_id), _text(eval_id), int(repeat))
            answer = _answer(case, line)
        except (KeyError, TypeError, ValueError):
            continue
        add(found.setdefault(answer.case, []), answer)
    return found


def add(before: list[Answer], answer: Answer) -> None:
    """Add the next answer of a case, or drop the one before that turned out to be incomplete."""
    if answer.responses is not None:
        before.append(answer)
        return
    key = answer.agent, answer.request
    same = [index for index, one in enumerate(before) if (one.agent, one.request) == key]
    if same:
        del before[same[-1]]


def _answer(case: CaseRef, data: Mapping[str, Any]) -> Answer:
    responses = data.get("responses")
    if responses is not None:
        if not isinstance(responses, list):
            raise TypeError("responses is not a list")
        responses = tuple(map(_text, responses))
    return Answer(case, _text(data.get("agent")), _text(data.get("asked")), responses)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:80]!r} is not a string")
    return value
