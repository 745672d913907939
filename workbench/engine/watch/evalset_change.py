"""Which cases of an evalset are not what they were, and whether that changes what the agent is asked."""

from collections.abc import Iterator
from typing import Any, Literal

from workbench.model.evalset import EvalCase, EvalsetDocument, case_or_none


def changed_cases(old: EvalsetDocument | None, new: EvalsetDocument) -> Iterator[tuple[str, Literal["score", "run"]]]:
    """The ids of cases of `new` that are new or differ: `run` if the agent would be asked something else, `score` if
    only what is expected of it changed."""
    before = {} if old is None else {case.eval_id: case.index for case in old.cases}
    for case in new.cases:
        earlier = before.get(case.eval_id)
        if old is None or earlier is None:
            yield case.eval_id, "run"
        elif old.text(earlier) != new.text(case.index):
            then, now = case_or_none(old, earlier), case_or_none(new, case.index)
            if then is None or now is None or _asked(then) != _asked(now):
                yield case.eval_id, "run"
            elif _expected(then) != _expected(now):
                yield case.eval_id, "score"


def _asked(case: EvalCase) -> tuple[Any, ...]:
    """What reaches the agent."""
    messages = None if case.turns is None else [turn.get("user_content") for turn in case.turns]
    return messages, case.scenario, case.session_input


def _expected(case: EvalCase) -> tuple[Any, ...]:
    """What its answers are held against."""
    return case.turns, case.rubrics, case.final_session_state
