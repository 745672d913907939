"""How a request to a model differs from the recorded one."""

import json
from typing import Any

import pytest

from workbench.judges.secret_forms import REPLACED
from workbench.run.recordings.recording import Declaration, Recording, digest
from workbench.run.recordings.requests import request_difference
from workbench.worker.jsonable import dumps

_FIND = {"name": "find", "description": "Finds an order.", "parameters": {"n": "int"}}
_SECRET = f"Key {REPLACED}API_KEY], be kind."
_QUESTION = {"parts": [{"text": "Where is my parcel?"}], "role": "user"}
_LONG = "You answer questions of customers about their parcels, politely, briefly and in English, whatever they say."
_RECORDING = Recording(
    "set",
    "case",
    tools={"desk": (Declaration("find", _FIND),)},
    parts={digest(part): part for part in (_LONG, {"temperature": 0.2}, _SECRET)},
)


def _differs(part: str, then: Any, now: Any, **more: Any) -> str:
    named = "" if then is None else digest(then)
    return request_difference(
        _RECORDING,
        dumps({"agent": "desk", "part": part, "then": named, "now": "" if now is None else dumps(now), **more}),
    )


def _declared(*tools: Any) -> list[Any]:
    return [{"function_declarations": list(tools)}]


@pytest.mark.parametrize(
    ("part", "then", "now", "text"),
    [
        (
            "system",
            _LONG,
            _LONG.replace("politely", "rudely"),
            'was "…about their parcels, politely, briefly and in English, whatever they say.", '
            'now "…about their parcels, rudely, briefly and in English, whatever they say."',
        ),
        ("system", None, "Be kind.", 'was not given, now "Be kind."'),
        (
            "system",
            _LONG,
            None,
            'was "You answer questions of customers about their parcels, politely,…", now not given',
        ),
        ("system", _LONG, _LONG.replace(" ", "\n"), "differs only in white space"),
        ("system", "unknown", "Be kind.", ""),
        (
            "system",
            _SECRET,
            "Key s3cret, be rude.",
            f'was "Key {REPLACED}API_KEY], be kind.", now "Key s3cret, be rude."',
        ),
        ("config", {"temperature": 0.2}, {"temperature": 0.7}, "temperature was 0.2, now 0.7"),
        ("config", None, {"stop": ["x"]}, 'stop was not given, now ["x"]'),
        ("tools", 1, _declared({**_FIND, "description": "Finds it."}), 'find: description was "Finds an order.", now'),
        ("tools", 1, _declared({**_FIND, "parameters": {}}), 'find: parameters.n was "int", now not given'),
        ("tools", 1, _declared(_FIND, {"name": "pay"}), "pay was not given, now declared"),
        ("tools", 1, None, "find was declared, now not given"),
        ("contents", None, _QUESTION, 'user was not given, now "Where is my parcel?"'),
        ("contents", _QUESTION, None, ""),
        ("contents", "unknown", _QUESTION, 'user now "Where is my parcel?"'),
    ],
)
def test_first_difference_is_shown(part: str, then: Any, now: Any, text: str) -> None:
    shown = _differs(part, then, now)
    assert shown.startswith(text), shown
    assert bool(text) == bool(shown)


@pytest.mark.parametrize("damaged", ["", "[]", "null", "{", '{"part": 1}', '{"part": "system", "now": 5}', "[" * 9000])
def test_damaged_report_gives_an_empty_difference(damaged: str) -> None:
    assert request_difference(_RECORDING, damaged) in ("", 'message now ""')


def test_hostile_texts_stay_one_short_line() -> None:
    shown = _differs("system", _LONG, "\x1b[2J\n" + "x" * 100_000)
    assert len(shown) < 500
    assert "\n" not in shown
    assert json.loads(shown[shown.index("now ") + 4 :]).endswith("…")
