"""Expectations of cases that no criterion compares, so that they never decide a verdict."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.agents.workspace.workspace import EvalsetEntry
from workbench.criteria.registry import descriptions
from workbench.events.events import Noticed
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.faults import Breach
from workbench.files.walk import relative_to
from workbench.text.counting import counted

_END_STATE, _TEXTS = "final_session_state", "intermediate_responses"
_HINTS = {
    _END_STATE: "Add the criterion `session_state_match`",
    _TEXTS: "Add the criterion `final_response_match_v2` with `include_intermediate_responses_in_final`",
}


def unused_expectations(case: EvalCase, config: CriteriaConfig) -> Iterator[Breach]:
    """Yield the expected end state and the expected texts before answers of a case if nothing compares them.

    Locations are inside the case. Nothing is reported for a broken config, and no texts if a function of the user may
    compare them.
    """
    if config.broken:
        return
    known = [(descriptions()[each.name], each.options) for each in config.criteria if each.name in descriptions()]
    if case.final_session_state is not None and not any(info.compares_end_state for info, _ in known):
        yield _unused((_END_STATE,))
    if config.custom_metrics or any(info.compares_texts(options) for info, options in known):
        return
    for number, turn in enumerate(case.turns or ()):
        if (turn.get("intermediate_data") or {}).get(_TEXTS):
            yield _unused(("conversation", number, "intermediate_data", _TEXTS))


def unused_notices(chosen: Iterable[tuple[EvalsetEntry, Iterable[int]]], root: Path) -> Iterator[Noticed]:
    """Yield one line for each kind of expectation and evalset. The numbers are positions of the cases that will run."""
    for entry, indexes in chosen:
        if not entry.document.mentions(_END_STATE, "finalSessionState", _TEXTS, "intermediateResponses"):
            continue
        cases = filter(None, (case_or_none(entry.document, index) for index in indexes))
        found = Counter(
            key
            for case in cases
            for key in {breach.location[-1] for breach in unused_expectations(case, entry.criteria.config)}
        )
        for key, count in sorted(found.items()):
            message = f"{relative_to(entry.file, root)}: {counted(count, 'case')} with `{key}`"
            yield Noticed("warning", f"{message}, which no criterion compares", _HINTS[str(key)])


def _unused(location: tuple[str | int, ...]) -> Breach:
    key = str(location[-1])
    return Breach(location, f"no criterion compares `{key}`", _HINTS[key], "warning", on_key=True)
