"""Files for `--inject`: what they may hold, and the place of each mistake."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from tests.schemas import SCHEMAS
from workbench.events.events import CaseRef
from workbench.files.injection_rules import Injection, parse_injection, read_injection
from workbench.files.own_file import OwnFileError
from workbench.worker import matching as worker

FILE = Path("faults.json")
HEAD = '{"schema": "agent-workbench/inject/1",\n'


def parse(text: str) -> Injection:
    return parse_injection(FILE, text.encode("utf-8", "surrogatepass"))


def rule(**fields: Any) -> dict[str, Any]:
    return parse(HEAD + f'"rules": [{json.dumps({"tool": "search", **fields})}]}}').rules[0]


def faults(text: str) -> list[str]:
    with pytest.raises(OwnFileError) as caught:
        parse(text)
    return [fault.sentence() for fault in caught.value.faults]


def test_error_has_a_builtin_class_and_a_text_by_default() -> None:
    assert rule(error={})["error"] == {
        "types": ["builtins.RuntimeError"],
        "message": "the service is not available",
    }


def test_error_class_falls_back_to_a_builtin_class() -> None:
    assert rule(error={"type": "IOError"})["error"]["types"] == ["builtins.IOError", "builtins.RuntimeError"]
    found = rule(error={"type": "httpx.ReadTimeout", "message": "late"})["error"]
    assert found == {"types": ["httpx.ReadTimeout", "builtins.RuntimeError"], "message": "late"}


def test_null_is_a_value_only_as_an_answer() -> None:
    assert rule(answer=None, agent=None) == {"tool": "search", "answer": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '"rules": [{"tool": "a", "error": {"type": "TimeOutError"}}]}',
            "faults.json:2:43 (rules[0].error.type): `TimeOutError` is not a built-in exception. "
            "Did you mean `TimeoutError`?",
        ),
        (
            '"rules": [{"tool": "a", "error": {"type": "SystemExit"}}]}',
            "faults.json:2:43 (rules[0].error.type): `SystemExit` is not a built-in exception. "
            "Use a built-in exception, such as TimeoutError, or write module.Class",
        ),
        (
            '"rules": [{"tool": "a", "error": {}, "answer": 1}]}',
            "faults.json:2:38 (rules[0].answer): a rule may have only one of `error`, `answer`, `dropped`, "
            "`malformed`, and this one has `error`, `answer`. Split it into two rules",
        ),
        (
            '"rules": [{"tool": "a", "dropped": "never", "only": 1, "every": 2}]}',
            "faults.json:2:56 (rules[0].every): a rule may have only one of `only`, `every`, `since`, "
            "and this one has `only`, `every`. Keep one",
        ),
        (
            '"rules": [{"tool": "a"}]}',
            "faults.json:2:11 (rules[0]): this rule does not say what happens to the call. "
            "Add one of `error`, `answer`, `dropped`, `malformed` and `latency_seconds`",
        ),
        (
            '"rules": [{"tol": "a", "answer": 1}]}',
            "faults.json:2:12 (rules[0].tol): unknown key `tol`. Did you mean `tool`?",
        ),
        ('"rules": []}', "faults.json:2:10 (rules): there are no rules"),
        ('"rules": [{"tool": "", "answer": 1}]}', "faults.json:2:20 (rules[0].tool): `tool` is empty"),
        (
            '"rules": [{"tool": "a", "latency_seconds": 121}]}',
            "faults.json:2:44 (rules[0].latency_seconds): `latency_seconds` must be less than or equal to 120",
        ),
        (
            '"rules": [{"tool": "a", "tool": "b", "answer": 1}]}',
            "faults.json:2:25: duplicate key `tool`: it is on line 2, too. Delete one of them",
        ),
    ],
)
def test_each_mistake_is_reported_with_its_place_and_a_hint(text: str, expected: str) -> None:
    assert faults(HEAD + text) == [expected]


def test_newer_schema_is_named() -> None:
    found = faults('{"schema": "agent-workbench/inject/2", "rules": [{"tool": "a", "answer": 1}]}')
    assert found == [
        "faults.json:1:12 (schema): `schema` must be 'agent-workbench/inject/1', "
        'not the text "agent-workbench/inject/2"'
    ]


@pytest.mark.parametrize("content", [b"", b"rules:\n- a", b"\xff\xfe{\0", b"[]", b"[" * 500, b"{", b"\x80", b"null"])
def test_file_without_rules_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(OwnFileError, match=r"faults\.json"):
        parse_injection(FILE, content)


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(OwnFileError, match=path.name):
            read_injection(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.sampled_from(HOSTILE[:20]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["tool", "args", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
rule_values = st.dictionaries(
    st.sampled_from(["tool", "agent", "args", "only", "every", "since", "probability", "latency_seconds", "error"])
    | st.sampled_from(["answer", "dropped", "malformed"]),
    json_values | st.sampled_from(["never", "cut_json", "search", 1, 0.5, {"type": "KeyError"}]),
    max_size=5,
)


@settings(max_examples=40)
@given(st.lists(rule_values, min_size=1, max_size=3))
def test_worker_accepts_the_rules_of_every_valid_file(rules: list[Any]) -> None:
    text = json.dumps({"schema": "agent-workbench/inject/1", "rules": rules})
    try:
        found = parse(text)
    except OwnFileError:
        return
    worker.Injection(list(found.rules), 1).decide("agent", "search", {})
    jsonschema.validate(json.loads(text), SCHEMAS["inject"]())


def test_seeds_differ_by_case_and_repeat_and_are_stable() -> None:
    refs = [CaseRef("a", "e.json", "e", case, repeat) for case in ("one", "two") for repeat in (1, 2)]
    seeds = [Injection((), 7).seed_of(ref) for ref in refs]
    assert len(set(seeds)) == 4
    assert seeds == [Injection((), 7).seed_of(ref) for ref in refs]
    assert seeds != [Injection((), 8).seed_of(ref) for ref in refs]


def test_committed_schema_is_up_to_date(repository: Path) -> None:
    committed = json.loads((repository / "docs/inject.schema.json").read_text("utf-8"))
    assert committed == SCHEMAS["inject"](), "python -m tests.schemas inject > docs/inject.schema.json"
