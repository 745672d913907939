"""A conversation in the scorer: what is asked of a criterion, and how its verdict travels."""

import contextlib
import dataclasses
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.agents.worker.frames import FrameTooLargeError, encode
from workbench.counting import counted
from workbench.event_json import fields_as_json
from workbench.events import MetricResult
from workbench.metrics import registry
from workbench.metrics.base import NotScorableError, Scored, ScoreRequest
from workbench.model.criteria import Criterion

_END_OF_PROMPT = 5_000
"""Characters of a question's beginning and end that are kept where the whole does not fit."""


@dataclass
class Case:
    """A conversation as it comes, a frame a turn: `static` says whether it has a reference; `environment` is the key
    of the environment that its judges use, `repeat` and `all_votes` how they are asked."""

    criteria: list[dict[str, Any]]
    scenario: dict[str, Any] | None
    rubrics: tuple[dict[str, Any], ...]
    static: bool
    environment: str = ""
    repeat: int = 1
    all_votes: bool = False
    expected: list[dict[str, Any]] = field(default_factory=list)
    actual: list[dict[str, Any]] = field(default_factory=list)

    def request(self, criterion: dict[str, Any]) -> ScoreRequest:
        """What is asked of one criterion."""
        return ScoreRequest(
            Criterion(criterion["name"], criterion["threshold"], criterion["value"], criterion["options"]),
            tuple(self.expected) if self.static else None,
            tuple(self.actual),
            self.scenario,
            self.rubrics,
            criterion["custom"],
            criterion["custom_config"],
        )


def score_one(case: Case, criterion: dict[str, Any]) -> Scored:
    """The verdict of one criterion that is computed; if it crashes, that is its verdict."""
    request = case.request(criterion)
    try:
        return registry.score(request)
    except (Exception, SystemExit) as error:
        return crashed(request.criterion, error)


def crashed(criterion: Criterion, error: BaseException) -> Scored:
    """The verdict of a criterion that raised: `error`, with the traceback in `details`."""
    if isinstance(error, NotScorableError):
        return Scored(MetricResult(criterion.name, "error", None, criterion.threshold, str(error)))
    reason = f"the metric crashed: {type(error).__name__}: {error}"
    details = {"traceback": "".join(traceback.format_exception(error))}
    return Scored(MetricResult(criterion.name, "error", None, criterion.threshold, reason, details))


def reply(number: int, results: Mapping[int, Scored], clean: Callable[[str], str] = str) -> bytes:
    """The results of a case, by the index of their criterion: one frame, or one for each if they are too large for
    that. `clean` takes secrets out of a text that is about to be cut: nobody would recognise a piece of one later."""
    with contextlib.suppress(FrameTooLargeError):
        return _frame(number, results)
    return b"".join(_shortened(number, index, scored, clean) for index, scored in results.items())


def _shortened(number: int, index: int, scored: Scored, clean: Callable[[str], str]) -> bytes:
    """The frame of one result, with as much of its explanation as goes into it."""
    with contextlib.suppress(FrameTooLargeError):
        return _frame(number, {index: scored})
    # Each question quotes all that the agent knew; what the judge found is small beside that.
    details = _with_brief_prompts(scored.result.details, clean)
    brief = dataclasses.replace(scored.result, details=details)
    turns = tuple(dataclasses.replace(turn, details=_with_brief_prompts(turn.details, clean)) for turn in scored.turns)
    try:
        return _frame(number, {index: Scored(brief, turns)})
    except FrameTooLargeError as error:
        # The verdict counts; its explanation is too large for anybody to read.
        kept = {key: value for key, value in scored.result.details.items() if key in ("judge", "tally")}
        bare = dataclasses.replace(scored.result, details={**kept, "left_out": f"the explanation: {error}"})
        turns = tuple(dataclasses.replace(turn, details={}) for turn in scored.turns)
        return _frame(number, {index: Scored(bare, turns)})


def _with_brief_prompts(value: Any, clean: Callable[[str], str]) -> Any:
    """The details, at any depth, with the middle left out of each question (`workbench.judge.base.record`) that is
    long."""
    if isinstance(value, list):
        return [_with_brief_prompts(item, clean) for item in value]
    if not isinstance(value, dict):
        return value
    asked = "prompt" in value and "replies" in value
    return {
        key: _brief(clean(item)) if asked and key == "prompt" else _with_brief_prompts(item, clean)
        for key, item in value.items()
    }


def _brief(prompt: str) -> str:
    left_out = len(prompt) - 2 * _END_OF_PROMPT
    if left_out <= 0:
        return prompt
    start, end = prompt[:_END_OF_PROMPT], prompt[-_END_OF_PROMPT:]
    return (
        f"{start}\n[… {counted(left_out, 'character')} left out: all questions together are too large to keep …]\n{end}"
    )


def _frame(number: int, results: Mapping[int, Scored]) -> bytes:
    return encode({"op": "scored", "id": number, "results": [_plain(*item) for item in results.items()]})


def _plain(index: int, scored: Scored) -> dict[str, Any]:
    turns = [fields_as_json(turn) for turn in scored.turns]
    return {"index": index, "result": fields_as_json(scored.result), "turns": turns}
