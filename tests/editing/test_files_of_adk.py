"""Real ADK files: one edited value changes one line, and google-adk reads the result."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editing.test_case_edit import CASES, RECORDED, WRITTEN
from workbench.editing.adk_session import case_from_session
from workbench.editing.capture import Choice, case_of
from workbench.editing.case_edit import (
    NotPossibleError,
    duplicate,
    move,
    new_case,
    parts_for,
    remove,
    with_part,
    with_value,
)
from workbench.editing.case_rows import rows_of
from workbench.editing.evalset_file import EvalsetFile, RejectedError, new_evalset
from workbench.editing.saving import Saver
from workbench.files.invocation import content_text, tool_calls


def web_page() -> bytes:
    """Return a file as ADK's web page writes it: `model_dump_json(indent=2)`, camelCase, with nulls and times."""
    turn = {
        "invocationId": "e-5b7a",
        "userContent": {"parts": [{"videoMetadata": None, "text": "Hello, späte Grüße"}], "role": "user"},
        "finalResponse": {"parts": [{"thought": None, "text": "Hi!"}], "role": None},
        "intermediateData": {"toolUses": [], "toolResponses": [], "intermediateResponses": []},
        "creationTimestamp": 1747345505.5,
    }
    case = {
        "evalId": "case1",
        "conversation": [turn],
        "sessionInput": {"appName": "desk", "userId": "user", "state": {}},
        "creationTimestamp": 1e3,
    }
    content = {"evalSetId": "s", "name": "s", "description": None}
    return json.dumps(
        {"eval_set_id": content["evalSetId"], "name": "s", "description": None, "eval_cases": [case]},
        indent=2,
        ensure_ascii=False,
    ).encode()


def command_line() -> bytes:
    """Return a file as `adk eval_set` writes it: a scenario in snake_case."""
    turn = {
        "invocation_id": "",
        "user_content": {"parts": [{"text": "Hello"}], "role": "user"},
        "creation_timestamp": 0.0,
    }
    case = {
        "eval_id": "b6ec",
        "conversation": [turn],
        "session_input": {"app_name": "desk", "user_id": "u", "state": {}},
    }
    content = {"eval_set_id": "s", "name": "s", "eval_cases": [case], "creation_timestamp": 1.7e9}
    return json.dumps(content, indent=2).encode()


DATA = Path(__file__).parent / "data" / "adk"
ODD = (
    '\ufeff{ "eval_cases" :[\r\n\t{"eval_id":"odd" ,\r\n\t  "extra": [1.0,1e3 , "\\u00e9"],\r\n'
    '   "conversation": [ {"user_content":{"parts":[{"text"\t: \r\n"Hello"\r\n}]}, "x_" : null\r\n}],\r\n'
    '"session_input":{"app_name":"a","user_id":"u"}}]\r\n,"eval_set_id":"odd"}'
).encode()
FILES = {
    "web page of before": web_page(),
    "command line of before": command_line(),
    "odd": ODD.replace(b', "x_" : null', b""),
    "web page": (DATA / "from_web_page.evalset.json").read_bytes(),
    "command line": (DATA / "from_command_line.evalset.json").read_bytes(),
}


@pytest.mark.parametrize("name", FILES)
def test_one_edited_value_changes_one_line(name: str, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    git("init", "-q")
    git("config", "core.autocrlf", "false")
    path = tmp_path / "s.evalset.json"
    path.write_bytes(FILES[name])
    git("add", ".")
    evalset = EvalsetFile(FILES[name])
    case = evalset.case(0)
    row = next(row for row in rows_of(case) if row.kind in ("user", "scenario"))
    after = evalset.with_case(0, with_value(case, row.location, "Guten Tag"))
    Saver(tmp_path / ".workbench", tmp_path).save("edit", {path: (FILES[name], after)})
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in git("diff", "--stat", "--", path.name)
    assert after == FILES[name].replace(json.dumps(row.value, ensure_ascii=False).encode(), b'"Guten Tag"')


@pytest.mark.parametrize("name", ["from_web_page", "from_command_line"])
def test_every_edited_value_of_a_real_file_changes_one_line(name: str) -> None:
    before = (DATA / f"{name}.evalset.json").read_bytes()
    evalset = EvalsetFile(before)
    lines = before.decode().split("\n")
    edited = set()
    for number in range(len(evalset.ids)):
        case = evalset.case(number)
        for row in rows_of(case):
            if not isinstance(row.value, str) or row.form not in ("text", "word") or row.kind == "id":
                continue
            try:
                after = evalset.with_case(number, with_value(case, row.location, "späte Grüße"))
            except RejectedError:
                continue  # Such as an author that nothing may be made of.
            changed = [(old, new) for old, new in zip(lines, after.decode().split("\n"), strict=True) if old != new]
            ((old, new),) = changed
            assert new.strip() == old.strip().replace(json.dumps(row.value, ensure_ascii=False), '"späte Grüße"')
            edited.add(row.kind)
    assert edited >= ({"user", "answer", "call"} if name == "from_web_page" else {"scenario", "session"})


@pytest.mark.parametrize(("name", "message"), [("saved_by_page", "Hello there, größe 東京"), ("saved_by_cli", "Hello")])
@pytest.mark.parametrize("recorded", [True, False])
def test_saved_adk_session_becomes_a_case_that_adk_reads(
    name: str, message: str, recorded: bool, tmp_path: Path
) -> None:
    captured = case_from_session(json.loads((DATA / f"{name}.session.json").read_text("utf-8")))
    assert captured.app_name == "parcel_desk"
    assert captured.state == {}
    *kept, unknown = captured.notes
    assert all("__session_metadata__" in note for note in kept)
    assert "not in the recording" in unknown
    assert captured.recording is not None
    assert [call.tool for call in captured.recording.calls] == ["track"]
    assert [content_text(turn["user_content"]) for turn in captured.turns] == [message, "Where is my parcel?"]
    assert [[call.name for call in tool_calls(turn)] for turn in captured.turns] == [[], ["track"]]
    case = case_of(captured, Choice("kept", frozenset({0, 1}), recorded=recorded), now=7.0)
    content = EvalsetFile(new_evalset("kept")).added(0, [case])
    assert adk_ids(tmp_path / "kept.evalset.json", content) == ["kept"]


def adk_ids(path: Path, content: bytes) -> list[str]:
    """Return the IDs that google-adk's own loader finds."""
    pytest.importorskip("google.adk.evaluation.local_eval_sets_manager")
    from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

    path.write_bytes(content)
    return [case.eval_id for case in load_eval_set_from_file(str(path), "s").eval_cases]


def test_samples_have_the_key_spelling_of_the_adk_tool_that_wrote_them() -> None:
    assert EvalsetFile(web_page()).camel
    assert not EvalsetFile(command_line()).camel


def edited_files() -> Iterator[bytes]:
    """Yield the files after every operation on every row."""
    for case in CASES:
        content = json.dumps({"eval_set_id": "s", "eval_cases": [case]}, indent=2).encode()
        evalset = EvalsetFile(content)
        for row in rows_of(case):
            operations: list[Any] = [
                lambda row=row, case=case: remove(case, row),
                lambda row=row, case=case: duplicate(case, row)[0],
                lambda row=row, case=case: move(case, row, 1)[0],
                *(
                    lambda row=row, case=case, part=part: with_part(case, row, part.what)[0]
                    for part in parts_for(case, row)
                ),
            ]
            for operation in operations:
                try:
                    yield evalset.with_case(0, operation())
                except (NotPossibleError, RejectedError):
                    continue
        yield evalset.with_copies([0])[0]
    for camel in (False, True):
        for scenario in (False, True):
            case = new_case("new", app="a", user="u", camel=camel, scenario=scenario)
            yield EvalsetFile(new_evalset("s")).added(0, [case])
            yield EvalsetFile(
                json.dumps({"eval_set_id": "s", "eval_cases": [WRITTEN, RECORDED | {"evalId": "r"}]}).encode()
            ).added(1, [case])


def test_google_adk_reads_the_written_files(tmp_path: Path) -> None:
    count = 0
    for content in dict.fromkeys(edited_files()):
        wanted = [case.get("evalId", case.get("eval_id")) for case in json.loads(content)["eval_cases"]]
        assert adk_ids(tmp_path / "s.evalset.json", content) == wanted
        count += 1
    assert count > 60
