"""The part of the scorer without an event loop: conversations, computed criteria, and the frames of verdicts."""

import dataclasses
import traceback
from dataclasses import dataclass, field
from typing import Any

from workbench.criteria import registry
from workbench.criteria.base import NotScorableError, Scored, ScoreRequest
from workbench.events.event_json import fields_as_json
from workbench.events.events import MetricResult, Usage
from workbench.files.criteria import Criterion
from workbench.files.prices import prices_from
from workbench.worker.frames import Channel, FrameTooLargeError, encode


@dataclass
class Case:
    """A conversation, received in one frame and a frame for each turn.

    `static` means that it has a reference. `environment` is the key of its judges' environment. `repeat` and
    `all_votes` are settings for judges.
    """

    criteria: list[dict[str, Any]]
    scenario: dict[str, Any] | None
    rubrics: tuple[dict[str, Any], ...]
    static: bool
    environment: str = ""
    repeat: int = 1
    all_votes: bool = False
    states: list[Any] = field(default_factory=lambda: [None, None])
    """The session state at the end: the expected one and the real one."""
    dataset_case: dict[str, Any] | None = None
    prices: dict[str, Any] = field(default_factory=dict)
    inner_calls: list[list[dict[str, Any]] | None] = field(default_factory=list)
    usage: dict[str, int] | None = None
    expected: list[dict[str, Any]] = field(default_factory=list)
    actual: list[dict[str, Any]] = field(default_factory=list)

    def request(self, criterion: dict[str, Any]) -> ScoreRequest:
        """Return the request to one criterion."""
        return ScoreRequest(
            Criterion(criterion["name"], criterion["threshold"], criterion["value"], criterion["options"]),
            tuple(self.expected) if self.static else None,
            tuple(self.actual),
            self.scenario,
            self.rubrics,
            criterion["custom"],
            criterion["custom_config"],
            final_session_state=self.states[0],
            end_state=self.states[1],
            dataset_case=self.dataset_case,
            prices=prices_from(self.prices),
            inner_calls=tuple(None if calls is None else tuple(calls) for calls in self.inner_calls),
            usage=None if self.usage is None else Usage(**self.usage),
        )


class SyncScorer:
    """The scorer of computed criteria. It collects messages for the event loop in `async_messages`."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.async_messages: list[dict[str, Any]] = []
        self._cases: dict[int, Case] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Do what a message says, or keep it in `async_messages` if that needs the event loop."""
        number = message.get("id", 0)
        match message["op"]:
            case "warm":
                _warm(message["criteria"])
            case "case":
                fields = {name: value for name, value in message.items() if name not in ("op", "id")}
                self._cases[number] = Case(**fields)
            case "expected":
                self._cases[number].expected.append(message["turn"])
            case "actual":
                self._cases[number].actual.append(message["turn"])
            case "score":
                self._score(number, self._cases.pop(number))
            case _:
                self.async_messages.append(message)

    def _score(self, number: int, case: Case) -> None:
        """Send the results of computed criteria."""
        for criterion in case.criteria:
            if criterion["asks"]:
                self.async_messages.append({"op": "ask", "id": number, "case": case, "criterion": criterion})
            else:
                self.channel.sock.sendall(reply(number, criterion["index"], score_one(case, criterion)))


def _warm(names: list[str]) -> None:
    """Score a dummy case by these criteria, to do their imports before the first case."""
    turn = {"final_response": {"parts": [{"text": "warm"}]}}
    case = Case([], None, (), True, expected=[turn], actual=[turn])
    rest = {"threshold": 0.0, "value": 0.0, "options": {}, "custom": False, "custom_config": None}
    for name in names:
        score_one(case, {"name": name, **rest})


def score_one(case: Case, criterion: dict[str, Any]) -> Scored:
    """Return the verdict of a computed criterion. It has status `error` if the criterion raises."""
    request = case.request(criterion)
    try:
        return registry.score(request)
    except (Exception, SystemExit) as error:
        return crashed(request.criterion, error)


def crashed(criterion: Criterion, error: BaseException) -> Scored:
    """Return the verdict `error` of a criterion that raised. `details` has the traceback of an unexpected exception."""
    if isinstance(error, NotScorableError):
        return Scored(MetricResult(criterion.name, "error", None, criterion.threshold, str(error)))
    reason = f"the metric crashed: {type(error).__name__}: {error}"
    details = {"traceback": "".join(traceback.format_exception(error))}
    return Scored(MetricResult(criterion.name, "error", None, criterion.threshold, reason, details))


def reply(number: int, index: int, scored: Scored) -> bytes:
    """Return the frame with the result of one criterion. An explanation that is too large for a frame is left out."""
    try:
        return _frame(number, index, scored)
    except FrameTooLargeError as error:
        kept = {key: value for key, value in scored.result.details.items() if key in ("judge", "tally")}
        bare = dataclasses.replace(scored.result, details={**kept, "left_out": f"the explanation: {error}"})
        turns = tuple(dataclasses.replace(turn, details={}) for turn in scored.turns)
        return _frame(number, index, Scored(bare, turns))


def _frame(number: int, index: int, scored: Scored) -> bytes:
    turns = [fields_as_json(turn) for turn in scored.turns]
    return encode(
        {"op": "scored", "id": number, "index": index, "result": fields_as_json(scored.result), "turns": turns}
    )
