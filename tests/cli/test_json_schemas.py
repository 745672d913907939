"""Every command that lists something has `--json`, and a schema in the docs that its output fits."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import jsonschema
import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, Project
from tests.schemas import SCHEMAS
from workbench.cli.command_line import _command
from workbench.cli.exit_codes import COMMANDS
from workbench.project.command_reports import REPORTS

DOCS = Path(__file__).parents[2] / "docs"
OLD = json.dumps([{"query": "hello", "expected_tool_use": [], "reference": "Hello", "odd": 1}])


def valid(command: str, text: str) -> dict[str, Any]:
    found = json.loads(text)
    jsonschema.validate(found, json.loads((DOCS / f"{command}.schema.json").read_text("utf-8")))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("command", REPORTS)
def test_committed_schema_matches_the_code(command: str) -> None:
    committed = json.loads((DOCS / f"{command}.schema.json").read_text("utf-8"))
    fix = f"python -m tests.schemas {command} > docs/{command}.schema.json"
    assert committed == SCHEMAS[command](), fix


def test_every_command_except_export_has_a_json_option() -> None:
    without = {
        name
        for name, module in COMMANDS.items()
        if not any(
            "--json" in parameter.opts for parameter in _command(module).params if isinstance(parameter, click.Option)
        )
    }
    assert without == {"export"}, "give the command --json, and a schema"


@pytest.mark.parametrize(
    "words",
    [
        ["check", "nowhere"],
        ["status", "nowhere"],
        ["history", "nowhere"],
        ["compare", "nowhere"],
        ["freeze", "nowhere"],
        ["migrate", "nowhere"],
        ["compare", "--gat"],
    ],
)
def test_refusal_is_json_that_fits_the_schema(words: list[str], here: Here) -> None:
    done = here(*words, "--json")
    assert done.returncode == 2
    assert valid(words[0], done.stdout)["error"]["message"] in done.stderr
    assert here(*words).stdout == ""


@pytest.mark.parametrize(("command", "schema"), [("run", "report"), ("score", "report"), ("try", "try")])
def test_refusal_of_a_run_names_its_schema(command: str, schema: str, here: Here) -> None:
    assert "error" in valid(schema, here(command, "nowhere", "--json", "-").stdout)


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        (["run", ".", "--runs", "0"], "report"),
        (["run", ".", "--inject", "nowhere"], "report"),
        (["score", "last", "--max-judge-calls", "-1"], "report"),
        (["try", "--runs", "0"], "try"),
        (["run", ".", "--timout", "9"], "report"),
        (["run", "--shard", "9/2", "."], "report"),
        (["run"], "report"),
        (["merge"], "report"),
        (["score", "last"], "report"),
        (["try", "nowhere"], "try"),
    ],
)
def test_refusal_replaces_older_reports(words: list[str], schema: str, project: Project, here: Here) -> None:
    report = project.write("report.json", {"schema": "agent-workbench/report/1", "run_id": "older"})
    junit = project.write("junit.xml", '<testsuites name="agent-workbench" tests="1" failures="0"/>')
    done = here(*words, "--json", "report.json", "--junit", "junit.xml")
    assert done.returncode == 2
    assert "error" in valid(schema, report.read_text("utf-8"))
    (error,) = ElementTree.parse(junit).iterfind("testsuite/testcase/error")
    assert error.attrib["message"]
    assert error.attrib["message"] in done.stderr
    assert ElementTree.parse(junit).getroot().attrib["errors"] == "1"


def test_refusal_replaces_an_older_comparison(project: Project, here: Here) -> None:
    comment = project.write("comment.md", "No regression.")
    assert here("compare", "nowhere", "last", "--markdown", "comment.md").returncode == 2
    assert "nowhere" in comment.read_text("utf-8")
    assert "No regression" not in comment.read_text("utf-8")


def test_refusal_does_not_replace_an_evalset(project: Project, here: Here) -> None:
    project.evalset(GOOD)
    path = next(project.root.rglob("*.evalset.json"))
    before = path.read_bytes()
    for option in ("--json", "--junit"):
        assert here("run", ".", option, str(path)).returncode == 2
    assert path.read_bytes() == before


def test_json_of_check_lists_problems(project: Project, here: Here) -> None:
    project.evalset(GOOD, GOOD)
    found = valid("check", here("check", "--json").stdout)
    assert found["summary"]["errors"] == 1
    assert found["problems"][0]["file"] == "echo/talk.evalset.json"
    assert found["place"] is None


def test_json_of_freeze_lists_cases(project: Project, here: Here) -> None:
    project.evalset(GOOD, BAD)
    assert project.run("run", ".").returncode == 1
    tried = valid("freeze", here("freeze", "last", "--dry-run", "--json").stdout)
    assert tried["dry_run"] is True
    assert not (project.root / "echo/talk.evalset.frozen").exists()
    done = valid("freeze", here("freeze", "last", "--json").stdout)
    assert [(one["eval_id"], one["change"]) for one in done["cases"]] == [("good", "new"), ("bad", "new")]
    assert all((project.root / one["file"]).is_file() for one in done["cases"])
    again = valid("freeze", here("freeze", "last", "--json").stdout)
    assert {one["change"] for one in again["cases"]} == {"unchanged"}


def test_json_of_migrate_lists_files(project: Project, here: Here) -> None:
    old = project.write("echo/old.test.json", OLD)
    current = project.evalset(GOOD)
    tried = valid("migrate", here("migrate", "echo/old.test.json", "--dry-run", "--json").stdout)
    (one,) = tried["files"]
    assert (one["file"], one["converted"], one["cases"], one["turns"]) == ("echo/old.test.json", True, 1, 1)
    assert any("odd" in remark for remark in one["remarks"])
    assert old.read_text("utf-8") == OLD
    done = valid("migrate", here("migrate", "echo/old.test.json", str(current), "--json").stdout)
    assert [one["converted"] for one in done["files"]] == [True, False]
    assert old.read_text("utf-8") != OLD
    assert valid("migrate", here("migrate", str(current), "--json").stdout)["files"][0]["why_not"]


def test_migrate_refuses_to_print_both_file_and_json(project: Project, here: Here) -> None:
    project.write("echo/old.test.json", OLD)
    done = here("migrate", "echo/old.test.json", "-o", "-", "--json")
    assert done.returncode == 2
    assert "cannot hold both" in valid("migrate", done.stdout)["error"]["message"]
