"""Answers of models in a run, stored in case the run is interrupted.

A resumed run reuses them for the same requests.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workbench.agents.worker.answer_file import AnswerFile
from workbench.engine.plan.secrets import Secrets
from workbench.events import CaseRef


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer in a case.

    `request` is a digest of the whole request. `responses` are ADK's LlmResponses as JSON text. None means that the
    previous answer to the same request was incomplete. `sent` says that another machine sent it.
    """

    case: CaseRef
    agent: str
    request: str
    responses: tuple[str, ...] | None
    sent: bool = False

    def frame(self) -> dict[str, Any]:
        """Return the frame for the worker (`docs/worker-protocol.md`)."""
        return {"op": "answered", "agent": self.agent, "asked": self.request, "responses": self.responses}


class AnswerStorage:
    """The file in which the workers of a run store answers. `environments` maps agent names to their environments.

    Workers on other machines send their answers, which `append` stores.
    """

    def __init__(self, file: Path, environments: Mapping[str, Mapping[str, str]]) -> None:
        self._file = str(file.absolute())
        self._thread: ThreadPoolExecutor | None = None
        # Each worker learns only the secrets of its own environment.
        self._without = {name: Secrets([values]).markers for name, values in environments.items()}

    def spec(self, ref: CaseRef) -> dict[str, Any]:
        """Return the settings of a case on this machine for `workbench.agents.worker.answer_file`."""
        case = [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat]
        return {"file": self._file, "case": case, "without": self._without[ref.agent]}

    def append(self, answer: Answer) -> None:
        """Store an answer that a worker sent, soon and in order."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "answers")
        line = {"agent": answer.agent, "asked": answer.request, "responses": answer.responses, "sent": answer.sent}
        self._thread.submit(AnswerFile(self.spec(answer.case)).append, line)

    def close(self) -> None:
        """Wait until all answers are stored. Call it in a thread."""
        if self._thread is not None:
            self._thread.shutdown()


SENT: Final = {"frames": True}
"""The settings of a case on another machine: its answers come as messages."""


def sent_answer(case: CaseRef, data: Any) -> Answer:
    """Return the answer in a worker's message.

    Raises:
        TypeError: it has another shape.
    """
    if not isinstance(data, dict):
        raise TypeError("an answer is not an object")
    return _answer(case, {**data, "sent": True})


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
    return Answer(case, _text(data.get("agent")), _text(data.get("asked")), responses, data.get("sent") is True)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:80]!r} is not a string")
    return value
