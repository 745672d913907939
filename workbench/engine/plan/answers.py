"""Answers of models in a run, kept while the run may still be interrupted.

The run that resumes it gives them again where the same is asked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.plan.secrets import Secrets
from workbench.events import CaseRef


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in a case: `asked` is a digest of the whole request, `responses` are ADK's LlmResponses as JSON text;
    None says that the answer before it to the same was not all of it."""

    case: CaseRef
    agent: str
    asked: str
    responses: tuple[str, ...] | None

    def frame(self) -> dict[str, Any]:
        """For the worker (`docs/worker-protocol.md`)."""
        return {"op": "answered", "agent": self.agent, "asked": self.asked, "responses": self.responses}


class AnswerStorage:
    """The file in which the workers of a run keep answers. `environments` are those of its agents, by name."""

    def __init__(self, file: Path, environments: Mapping[str, Mapping[str, str]]) -> None:
        self._file = str(file.absolute())
        # Each is told of the secrets that it has anyway, and of no others.
        self._without = {name: Secrets([values]).markers for name, values in environments.items()}

    def spec(self, ref: CaseRef) -> dict[str, Any]:
        """For a case (`workbench.agents.worker.answer_file`)."""
        case = [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat]
        return {"file": self._file, "case": case, "without": self._without[ref.agent]}


def read(lines: Iterable[Mapping[str, Any]]) -> dict[CaseRef, list[Answer]]:
    """The answers that can be given again, by case, in the order in which they came. Lines that say something else
    are left out."""
    found: dict[CaseRef, list[Answer]] = {}
    for line in lines:
        try:
            agent, file, eval_set_id, eval_id, repeat = line["case"]
            case = CaseRef(_text(agent), _text(file), _text(eval_set_id), _text(eval_id), int(repeat))
            answer = _answer(case, line)
        except (KeyError, TypeError, ValueError):
            continue
        before = found.setdefault(answer.case, [])
        if answer.responses is not None:
            before.append(answer)
            continue
        same = [index for index, one in enumerate(before) if (one.agent, one.asked) == (answer.agent, answer.asked)]
        if same:
            del before[same[-1]]
    return found


def _answer(case: CaseRef, data: Mapping[str, Any]) -> Answer:
    responses = data.get("responses")
    if responses is not None:
        if not isinstance(responses, list):
            raise TypeError("no list of responses")
        responses = tuple(map(_text, responses))
    return Answer(case, _text(data.get("agent")), _text(data.get("asked")), responses)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:80]!r} is no text")
    return value
