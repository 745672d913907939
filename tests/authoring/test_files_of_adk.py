"""Files as others write them: one value edited is one line of difference, and google-adk reads what was written."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.authoring.test_case_edit import CASES, RECORDED, WRITTEN
from workbench.authoring.case_edit import NotPossibleError, duplicate, move, remove, with_value
from workbench.authoring.case_parts import new_case, parts_for, with_part
from workbench.authoring.case_rows import rows_of
from workbench.authoring.evalset_file import EvalsetFile, RejectedError, new_evalset
from workbench.authoring.saving import Saver


def web_page() -> bytes:
    """As ADK's web page writes it: `model_dump_json(indent=2)`, camelCase, nulls and times everywhere."""
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
    """As `adk eval_set` writes it: a scenario, snake_case."""
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


ODD = (
    '\ufeff{ "eval_cases" :[\r\n\t{"eval_id":"odd" ,\r\n\t  "extra": [1.0,1e3 , "\\u00e9"],\r\n'
    '   "conversation": [ {"user_content":{"parts":[{"text"\t: \r\n"Hello"\r\n}]}, "x_" : null\r\n}],\r\n'
    '"session_input":{"app_name":"a","user_id":"u"}}]\r\n,"eval_set_id":"odd"}'
).encode()
FILES = {"web page": web_page(), "command line": command_line(), "odd": ODD.replace(b', "x_" : null', b"")}


@pytest.mark.parametrize("name", FILES)
def test_one_value_is_one_line(name: str, tmp_path: Path) -> None:
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
    row = next(row for row in rows_of(case) if row.kind == "user")
    after = evalset.changed(0, with_value(case, row.location, "Guten Tag"))
    Saver(tmp_path / ".workbench").save("edit", {path: (FILES[name], after)})
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in git("diff", "--stat", "--", path.name)
    assert after == FILES[name].replace(json.dumps(row.value, ensure_ascii=False).encode(), b'"Guten Tag"')


def test_the_names_of_the_samples_are_those_of_adk() -> None:
    assert EvalsetFile(web_page()).camel
    assert not EvalsetFile(command_line()).camel


def edited_files() -> Iterator[bytes]:
    """Files after every operation on every row."""
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
                    yield evalset.changed(0, operation())
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


def test_what_is_written_google_adk_reads(tmp_path: Path) -> None:
    pytest.importorskip("google.adk.evaluation.local_eval_sets_manager")
    from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

    path = tmp_path / "s.evalset.json"
    count = 0
    for content in dict.fromkeys(edited_files()):
        path.write_bytes(content)
        loaded = load_eval_set_from_file(str(path), "s")
        wanted = [case.get("evalId", case.get("eval_id")) for case in json.loads(content)["eval_cases"]]
        assert [case.eval_id for case in loaded.eval_cases] == wanted
        count += 1
    assert count > 60
