"""Files that are named like evalsets or configs but hold something else: one message each, not one for each line."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.model.breaches import nearest
from workbench.model.faults import Fault
from workbench.model.places import Places

WRAPPER = '{"eval_set_id": "…", "eval_cases": […]}'
"""The shape of an evalset, for hints."""
_FRAME_KEYS = ("eval_set_id", "eval_cases")
_CASE_KEYS = ("eval_id", "conversation", "conversation_scenario", "session_input")
_BEFORE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_JSON_BEGINS = "{[\"'"
_SHOWN = 20


def not_json(path: Path, text: str, places: Places, hint: str = "") -> Fault | None:
    """Return the single fault of a text that does not even start like JSON, else None.

    The text is known to have errors. `hint` says what was expected, by default an evalset.
    """
    before = _BEFORE.match(text)
    start = before.end() if before is not None else 0
    if start >= len(text) or text[start] in _JSON_BEGINS:
        return None
    begins = text[start : start + _SHOWN].splitlines()[0]
    return Fault(path, *places.at(start), "", f"the file is not JSON: it begins with `{begins}`", hint or _expected())


def not_an_evalset(path: Path, keys: Iterable[str], place: tuple[int, int] = (1, 1)) -> Fault | None:
    """Return the single fault of an object whose `keys` do not even resemble those of an evalset, else None.

    An object without keys may become an evalset: None.
    """
    found = list(keys)
    if not found or any(nearest(key, _FRAME_KEYS) for key in found):
        return None
    message = "the file is not an ADK evalset: it has neither `eval_set_id` nor `eval_cases`"
    return Fault(path, *place, "", message, _expected())


def not_cases(path: Path, first: Any, place: tuple[int, int]) -> Fault | None:
    """Return the single fault of `eval_cases` whose `first` entry has no key of a case, else None."""
    if not isinstance(first, dict) or any(nearest(str(key), _CASE_KEYS) for key in first):
        return None
    message = "`eval_cases` does not hold ADK cases: the first has neither `eval_id` nor `conversation`"
    hint = 'Expected {"eval_id": "…", "conversation": […]}'
    return Fault(path, *place, "eval_cases[0]", message, hint)


def _expected() -> str:
    return f"Expected {WRAPPER}. If it is not an evalset, rename it"
