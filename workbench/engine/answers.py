"""What models answered the agents of a run, kept while the run may still be interrupted: the one that resumes it gives
these answers again where the same is asked."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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

    def line(self) -> str:
        """Its form on disk, ASCII JSON."""
        ref = self.case
        case = [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat]
        return json.dumps({"case": case, "agent": self.agent, "asked": self.asked, "responses": self.responses})


Keep: TypeAlias = Callable[[Answer], None]
"""Takes an answer as soon as it is there."""


def told(case: CaseRef, frame: Mapping[str, Any]) -> Answer:
    """What a worker tells.

    Raises:
        TypeError: it is no answer.
    """
    return _answer(case, frame)


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
