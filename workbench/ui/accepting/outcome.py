"""The transcript to accept, and the scores before and after it is accepted."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from workbench.criteria.base import ScoreRequest, mean
from workbench.criteria.registry import descriptions, score
from workbench.criteria.rouge_words import rouge_words
from workbench.criteria.trajectory import includes_agent_tools, unknown_calls
from workbench.editing.accept import NotComparableError
from workbench.events.events import InnerCalls, MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import content_text, with_inner_calls
from workbench.files.run_options import UsageFaultError
from workbench.files.spelling import get
from workbench.store.history.reading import open_run
from workbench.store.history.run_names import LAST, last_run
from workbench.store.transcripts import StoredCase


@dataclass(frozen=True)
class Transcript:
    """A transcript of a case in a run.

    `turns` are ADK invocations, or None for a turn that did not end. `state` is the session state at the end, or None.
    `inner_calls` are the calls made inside agent tools (agents that are used as tools), by turn; None if unknown.
    """

    run_id: str
    repeat: int
    turns: tuple[dict[str, Any] | None, ...]
    state: dict[str, Any] | None = None
    inner_calls: tuple[InnerCalls, ...] = ()

    def compared(self, criteria: Iterable[Criterion]) -> "Transcript":
        """Return this transcript, with the calls inside agent tools added if one of the criteria compares them.

        Raises:
            NotComparableError: These calls were not recorded.
        """
        if not includes_agent_tools(criteria):
            return self
        known = [turn is not None for turn in self.turns]
        inner = [calls for calls, is_known in zip(self.inner_calls, known, strict=True) if is_known]
        if why := unknown_calls(inner, sum(known)):
            raise NotComparableError(why)
        merged = (
            None if turn is None else with_inner_calls(turn, calls or ())
            for turn, calls in zip(self.turns, self.inner_calls, strict=True)
        )
        return replace(self, turns=tuple(merged), inner_calls=((),) * len(known))


def of_last_run(state: Path, file: str, eval_id: str) -> Transcript | None:
    """Return the transcript of a case in the last stored run, or None if there is no run or no transcript.

    `state` is the state folder, and `file` is relative to the root. Reads the run, so call it in a thread.

    Raises:
        NotComparableError: The run cannot be read.
    """
    if last_run(state) is None:
        return None
    try:
        run = open_run(LAST, state, state)
    except UsageFaultError as error:
        raise NotComparableError(str(error)) from None
    cases = (case for ref, case in run.cases.items() if ref.name == (file, eval_id))
    return next((found for case in cases if (found := transcript_of(run.run_id, case)) is not None), None)


def transcript_of(run_id: str, case: StoredCase) -> Transcript | None:
    """Return the transcript of an execution in the run with this ID, or None if it has no turns."""
    turns = {turn.turn: turn for turn in case.turns}
    if not turns:
        return None
    actual = tuple(turns[number].actual if number in turns else None for number in range(max(turns) + 1))
    inner = tuple(turns[number].inner_calls if number in turns else None for number in range(len(actual)))
    return Transcript(run_id, case.ref.repeat, actual, turns[max(turns)].state, inner)


WORDS = "response_match_score"
"""The criterion that compares words. A new score is previewed only if it is known without ROUGE."""
_LONGEST = 200_000
"""Maximum length, in characters, of a transcript that the dialog scores."""

Results = Sequence[Mapping[str, MetricResult]]
"""The results of each turn, by criterion."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A criterion's score before and after accepting. A score is None if there is nothing to judge."""

    name: str
    before: float | None
    after: float | None
    passes: bool
    """Whether the score after accepting reaches the threshold."""


def outcomes(
    criteria: Sequence[Criterion],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    actual: Sequence[Any],
    verdicts: Results = (),
    changed: Sequence[Criterion] = (),
    state: dict[str, Any] | None = None,
) -> list[Outcome]:
    """Return the outcome of each criterion whose scores are known without a judge and ROUGE. Call it in a thread.

    `before` and `after` are the JSON of the case. `actual` is its transcript, including the calls inside agent tools
    that a criterion compares. `verdicts` are the results of its turns. `changed` replaces criteria of the same name for
    the score after accepting. `state` is the session state at the end.

    Return [] if the case is invalid, its turns do not match those of the transcript, or the transcript is too large.
    """
    whole = [turn for turn in actual if turn is not None]
    if len(json.dumps(whole, default=str)) > _LONGEST:
        return []
    old, new = _turns(before), _turns(after)
    if old is None or new is None or not len(old) == len(new) == len(whole):
        return []
    found = []
    new_criteria = {criterion.name: criterion for criterion in (*criteria, *changed)}
    for criterion in criteria:
        now = new_criteria[criterion.name]
        scores: list[float | None] | None = None
        info = descriptions().get(criterion.name)
        if info is not None and (info.compares_calls or info.compares_end_state) and info.asks is None:
            request = partial(ScoreRequest, end_state=state, inner_calls=((),) * len(whole))
            requests = (
                request(one, side, tuple(whole), final_session_state=get(case, "final_session_state"))
                for one, side, case in ((criterion, old, before), (now, new, after))
            )
            scores = [score(one).result.score for one in requests]
        elif criterion.name == WORDS:
            scores = _of_words(old, new, whole, verdicts)
        if scores is not None:
            one, other = scores
            found.append(Outcome(criterion.name, one, other, other is not None and other >= criterion.threshold))
    return found


def _of_words(
    old: Sequence[Any], new: Sequence[Any], actual: Sequence[Any], verdicts: Results
) -> list[float | None] | None:
    """Return the mean word scores before and after, or None if they are not known without computing ROUGE.

    ROUGE needs half a second and libraries that the screen does not load. A turn whose expected answer is unchanged
    keeps its score. A turn whose answer equals the new expected answer scores 1.
    """
    if len(verdicts) != len(actual):
        return None
    known = [result.score if (result := turn.get(WORDS)) is not None else None for turn in verdicts]
    after: list[float | None] = []
    for number, made in enumerate(actual):
        one, other, reply = (content_text(turn.get("final_response")) for turn in (old[number], new[number], made))
        if one == other:
            after.append(known[number])
        elif other == reply and rouge_words(reply):
            after.append(1.0)
        else:
            return None
    return [mean([one for one in side if one is not None]) for side in (known, after)]


def _turns(case: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    from workbench.files.current_cases import validate_case

    turns_only = {"eval_id": "", "conversation": case.get("conversation")}
    value, _ = validate_case(json.dumps(turns_only).encode("ascii"))
    turns = value.get("conversation") if isinstance(value, dict) else None
    return None if turns is None else tuple(turns)


def concerns(kind: str, failed: Iterable[str]) -> list[str]:
    """Return the failed criteria that a hunk of this kind can affect, or [] if it affects none."""
    if kind in ("text", "text added", "text removed", "result"):
        return []
    infos = [descriptions()[name] for name in failed if name in descriptions()]
    if kind == "state":
        return [info.name for info in infos if info.compares_end_state]
    return [info.name for info in infos if (info.compares_answers if kind == "answer" else info.compares_calls)]
