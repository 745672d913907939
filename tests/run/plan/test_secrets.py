"""Secrets are found in every form, and nothing else is changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria.secrets import Secrets, not_scored_again
from workbench.events.event_json import to_json
from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    MetricResult,
    MetricScored,
    Noticed,
    OutputCaptured,
    PlannedCase,
    TurnFinished,
)
from workbench.files.criteria import stored_config
from workbench.files.settings import read_settings
from workbench.judges import secret_forms
from workbench.store.transcripts import StoredCase

REF = CaseRef("correct-horse", "a/correct-horse.evalset.json", "correct-horse", "correct-horse")
SECRETS = Secrets(
    [{"DB_PASSWORD": "correct-horse", "SHORT_KEY": "1234567", "HOME": "/home/somebody", "PIN_TOKEN": "12345678"}]
)


def cleaned(text: str) -> str:
    return SECRETS.clean_text(text)


def test_values_of_secret_variables_are_replaced_by_their_names() -> None:
    assert cleaned("it is correct-horse.") == "it is [secret DB_PASSWORD]."
    assert cleaned("1234567 in /home/somebody") == "1234567 in /home/somebody"


def test_cut_secret_is_replaced() -> None:
    assert cleaned("the judge says: it is correct-ho…") == "the judge says: it is [secret DB_PASSWORD]…"
    assert cleaned("the judge says: it is corr") == "the judge says: it is corr"


_OLD_NAMES = ("OPENAI_API_KEY", "gh_token", "MY_SECRET_2", "PasswordHash", "AWS_CREDENTIALS")
_WHOLE_WORDS = ("GITHUB_PAT", "DB_PWD", "AUTH_HEADER", "smtp_pass", "SESSION_COOKIE", "SENTRY_DSN", "SLACK_WEBHOOK_URL")


@pytest.mark.parametrize("name", [*_OLD_NAMES, *_WHOLE_WORDS, "PASS"])
def test_secret_variables_are_recognised_by_name(name: str) -> None:
    assert Secrets([{name: "hunter2hunter2"}]).clean_text("hunter2hunter2") == f"[secret {name}]"


@pytest.mark.parametrize(
    "name", ["PATH", "AUTHOR", "PWD", "PASSENGERS", "DB_PATH", "OLDPWD", "COOKIES_OK", "ACME_LICENSE"]
)
def test_variables_without_a_secret_word_in_their_name_are_not_secret(name: str) -> None:
    assert Secrets([{name: "hunter2hunter2"}]).clean_text("hunter2hunter2") == "hunter2hunter2"


def test_variables_named_in_the_settings_are_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[secrets]\nnames = ["ACME_LICENSE", "pin"]\n', encoding="utf-8")
    monkeypatch.setattr(secret_forms, "_settings", lambda: read_settings(file))
    secrets = Secrets([{"ACME_LICENSE": "hunter2hunter2", "PIN": "4711-4711", "OTHER_LICENSE": "correct-horse"}])
    assert secrets.clean_text("hunter2hunter2 4711-4711") == "[secret ACME_LICENSE] [secret PIN]"
    assert secrets.clean_text("correct-horse") == "correct-horse"


def test_addresses_in_json_are_secret_only_as_webhooks() -> None:
    urls = {"token_uri": "https://keys.example.com/token", "slack_webhook": "https://hooks.example.com/T0/B0/x"}
    secrets = Secrets([{"SERVICES": json.dumps(urls)}])
    assert secrets.clean_text(" ".join(urls.values())) == "https://keys.example.com/token [secret SERVICES]"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_secret_inside_json_is_replaced(ascii_only: bool) -> None:
    secret = '-----BEGIN "KEY"-----\nschlüssel\n-----END-----\n'
    text = json.dumps({"k": secret}, ensure_ascii=ascii_only)
    secrets = Secrets([{"SIGNING_KEY": secret}])
    assert secrets.clean_text(text) == '{"k": "[secret SIGNING_KEY]"}'
    assert secrets.may_contain(json.dumps(text))


def test_secret_inside_another_secret_is_replaced_completely() -> None:
    both = Secrets([{"A_KEY": "abcdefgh", "B_KEY": "abcdefghijkl"}])
    assert both.clean_text("abcdefghijkl abcdefgh") == "[secret B_KEY] [secret A_KEY]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: [secret header]"),
        ("authorization: bearer abc.def-123, next", "authorization: [secret header], next"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': '[secret header]'}"),
        ('{"x-goog-api-key": "AIzaSy0123456789"}', '{"x-goog-api-key": "[secret header]"}'),
        (r'"{\"authorization\": \"Bearer abcdef\"}"', r'"{\"authorization\": \"[secret header]\"}"'),
        ("X-API-key: AIzaSy0123456789", "X-API-key: [secret header]"),
        ("Authorization%3A%20Bearer%20abc&x=1", "Authorization%3A%20[secret header]"),
        ("authorization%3A+ApiKey+abc", "authorization%3A+[secret header]"),
        ("%22Authorization%22%3A%20%22Bearer%20abc%22", "%22Authorization%22%3A%20%22[secret header]"),
        ("{&quot;Authorization&quot;: &quot;Bearer abc&quot;}", "{&quot;Authorization&quot;: &quot;[secret header];}"),
        ("{&#x27;x-api-key&#x27;: &#x27;AIzaSy0123&#x27;}", "{&#x27;x-api-key&#x27;: &#x27;[secret header];}"),
        ("{'Authorization': ['Bearer abc']}", "{'Authorization': ['[secret header]']}"),
        ("[('Authorization', 'Bearer abc')]", "[('Authorization', '[secret header]')]"),
        ("{b'authorization': b'Bearer abc'}", "{b'authorization': b'[secret header]'}"),
        ('["authorization", "confidential"]', '["authorization", "confidential"]'),
        ("authorization is needed", "authorization is needed"),
    ],
)
def test_headers_are_recognised_by_name(text: str, expected: str) -> None:
    assert cleaned(text) == expected


_AWS = "AWS4-HMAC-SHA256 Credential=AKIA4711/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=4711fe"


@pytest.mark.parametrize("value", ["ApiKey 4711-abcd", _AWS, 'Digest username="4711", realm="a 4711", response="4711"'])
def test_headers_of_any_scheme_and_as_name_and_value_are_replaced(value: str) -> None:
    named: list[dict[str, Any]] = [
        {"name": "Authorization", "value": value},
        {"Value": [value], "key": "authorization"},
    ]
    for data in [*named, ["Authorization", value], {"headers": named}, f"Authorization: {value}"]:
        written = json.dumps(data)
        texts = [written, json.dumps(written), repr(data), json.dumps(Secrets([]).clean_data(data))]
        assert [text for text in texts if "4711" in cleaned(text) or "[secret header]" not in cleaned(text)] == []
        assert "4711" not in secret_forms.Scrubber({})(written)


def test_headers_with_several_values_and_in_lists_are_replaced() -> None:
    data = {"X-Api-Key": ["one", "two"], "headers": [["Authorization", "Bearer abc"], ["authorization", "scope"]]}
    pairs = [["Authorization", "[secret header]"], ["authorization", "scope"]]
    beside = Secrets([{"DESK_KEY": "correct-horse"}]).clean_data(["correct-horse, Authorization", "Bearer abc"])
    assert beside == ["[secret DESK_KEY], Authorization", "[secret header]"]
    assert Secrets([]).clean_data(data) == {"X-Api-Key": ["[secret header]"] * 2, "headers": pairs}


def test_blanks_around_the_value_of_a_variable_hide_no_secret() -> None:
    secrets = Secrets([{"DESK_PASSWORD": " correct-horse\n"}])
    assert secrets.clean_text("correct-horse") == "[secret DESK_PASSWORD]"


def test_only_foreign_parts_of_an_event_are_cleaned() -> None:
    dirty: Any = {
        "correct-horse": ["a correct-horse", {"pin": 12345678, "ok": 1234567, "yes": True, "authorization": "x"}]
    }
    clean: Any = {
        "[secret DB_PASSWORD]": [
            "a [secret DB_PASSWORD]",
            {"pin": "[secret PIN_TOKEN]", "ok": 1234567, "yes": True, "authorization": "[secret header]"},
        ]
    }
    metric = MetricResult("correct-horse", "failed", 0.0, 1.0, "got correct-horse", dirty)
    shown = MetricResult("correct-horse", "failed", 0.0, 1.0, "got [secret DB_PASSWORD]", clean)
    text, hidden = "correct-horse", "[secret DB_PASSWORD]"
    pairs: list[tuple[Any, Any]] = [
        (AgentActed(REF, 0, dirty), AgentActed(REF, 0, clean)),
        (TurnFinished(REF, 0, dirty, text), TurnFinished(REF, 0, clean, hidden)),
        (OutputCaptured(REF, "stdout", text), OutputCaptured(REF, "stdout", hidden)),
        (MetricScored(REF, metric, (metric,)), MetricScored(REF, shown, (shown,))),
        (CaseStarted(REF, 1.0, (dirty,), dirty), CaseStarted(REF, 1.0, (clean,), clean)),
        (Noticed("info", text, text), Noticed("info", hidden, hidden)),
        (
            CaseFinished(REF, "error", CaseError("timeout", text, text, text), 12345678.0),
            CaseFinished(REF, "error", CaseError("timeout", hidden, hidden, hidden), 12345678.0),
        ),
    ]
    for event, expected in pairs:
        assert SECRETS.may_contain(json.dumps(to_json(event)))
        assert SECRETS.clean(event) == expected


def test_event_without_secrets_is_returned_unchanged() -> None:
    event = OutputCaptured(REF, "stdout", "nothing to hide")
    assert Secrets([{}]).clean(event) is event
    assert not Secrets([{"HOME": "nothing to hide"}]).may_contain(json.dumps(to_json(event)))


@given(
    secret=st.text(min_size=8, max_size=30),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
    nested=st.booleans(),
)
def test_quick_check_never_misses_a_secret(secret: str, before: str, after: str, nested: bool) -> None:
    secrets = Secrets([{"THE_KEY": secret}])
    text = before + secret + after
    data = {"text": json.dumps({"inner": text}) if nested else text}
    event = AgentActed(REF, 0, data)
    assert secrets.may_contain(json.dumps(to_json(event)))
    if not nested:
        assert secret not in secrets.clean(event).acted["text"] or secret in "[secret THE_KEY]"


def test_secret_in_nested_json_text_is_replaced() -> None:
    """A tool that returns JSON as text, in a question to a judge, which writes results as JSON."""
    secret = 'BEGIN "KEY"\nabcdefgh\\ü\nEND'
    secrets = Secrets([{"DESK_KEY": secret}])
    text = json.dumps({"result": json.dumps({"key": secret})}, ensure_ascii=False)
    assert secrets.may_contain(json.dumps({"prompt": text}))
    cleaned = secrets.clean_text(text)
    assert "abcdefgh" not in cleaned
    assert "[secret DESK_KEY]" in cleaned


@pytest.mark.parametrize("included", [True, False])
def test_secret_in_a_call_of_an_agent_tool_counts_only_if_the_call_is_compared(included: bool) -> None:
    value = {"threshold": 1.0, "include_agent_tools": included}
    criteria = {"tool_trajectory_avg_score": value}
    inner = ({"tool": "clerk", "name": "fetch", "args": {"key": cleaned("correct-horse")}},)
    turn = {"user_content": {"parts": [{"text": "hello"}]}}
    started = CaseStarted(REF, 0.0, (turn,), criteria)
    stored = StoredCase(PlannedCase(REF, None, "default"), started, [TurnFinished(REF, 0, turn, inner_calls=inner)])
    found = not_scored_again(stored, stored_config(criteria, {}, None))
    assert [one.result.status for one in found] == ["not_evaluated"] * included
