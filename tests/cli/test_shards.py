"""Shards from the shell's side: `run --shard K/N` and `merge`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, RAISES, Project, case, statuses

_TIMES = {"run_id", "started", "duration_seconds", "duration", "creation_timestamp", "invocation_id"}


def without_times(data: Any) -> Any:
    """Return a report without ids, times, and the metric that measures time."""
    if isinstance(data, dict):
        return {name: without_times(value) for name, value in data.items() if name not in _TIMES}
    if not isinstance(data, list):
        return data
    return [
        without_times(value)
        for value in data
        if not (isinstance(value, dict) and value.get("name") == "invocation_duration_v1")
    ]


def run_shards(project: Project, count: int, *words: str) -> list[int]:
    """Run all shards, each with a report `K.json`, and return their exit codes."""
    return [
        project.run("run", ".", "--shard", f"{index}/{count}", "--json", f"{index}.json", *words).returncode
        for index in range(1, count + 1)
    ]


def read(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(file.read_text("ascii"))
    return data


def test_merged_shards_equal_one_run_and_list_broken_files_once(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES)
    project.write("echo/torn.evalset.json", '{"eval_set_id": "torn", "eval_cases": [')
    project.evalset(case("a"), case("b"), path="echo/odd/odd.evalset.json")
    project.write("echo/odd/test_config.json", {"criteria": {"response_mtch_score": 1}})
    code, one = project.report(".", "--runs", "2", "--junit", "one.xml")
    assert run_shards(project, 4, "--runs", "2") == [3, 3, 3, 3]
    merged = project.run("merge", "1.json", "3.json", "2.json", "4.json", "--json", "all.json", "--junit", "all.xml")
    assert merged.returncode == code == 3
    together = read(project.root / "all.json")
    assert without_times(together) == without_times(one)
    assert [item["evalset_file"] for item in together["cases"]].count("echo/torn.evalset.json") == 1
    files = ((project.root / name).read_text("utf-8") for name in ("one.xml", "all.xml"))
    times = re.compile(r'time(stamp)?="[^"]*"|^ cost .*$|^ *invocation_duration_v1 .*$', re.MULTILINE)
    first, second = (times.sub("", text) for text in files)
    assert first == second
    summary = merged.stdout.splitlines()[-1]
    assert re.sub(r" in .* s", "", summary) == "11 cases: 2 passed, 2 failed, 7 errors"


def test_merged_state_folders_equal_merged_reports(project: Project) -> None:
    """The first two shards share the state folder of the project. The last one has its own."""
    project.evalset(GOOD, BAD, RAISES, case("prints", "print"))
    for index, words in ((1, []), (2, []), (3, ["--state-dir", "third"])):
        project.run("run", ".", "--runs", "2", "--shard", f"{index}/3", "--json", f"{index}.json", *words)
    merges = {"reports": ["1.json", "2.json", "3.json"], "folders": [".", "third"], "mixed": [".workbench", "3.json"]}
    for name, paths in merges.items():
        done = project.run("merge", *paths, "--json", f"{name}.json", "--junit", f"{name}.xml")
        assert (done.returncode, done.stderr) == (3, "")
    first, *others = (read(project.root / f"{name}.json") | {"run_id": ""} for name in merges)
    assert others == [first, first]
    xml, *more = ((project.root / f"{name}.xml").read_text("utf-8") for name in merges)
    assert more == [xml, xml]


def test_other_commands_accept_a_merged_report(project: Project) -> None:
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--json", "one.json")
    assert run_shards(project, 2) == [0, 1]
    assert project.run("merge", "1.json", "2.json", "--json", "all.json").returncode == 1
    compared = project.run("compare", "one.json", "all.json")
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "REGRESSION" not in compared.stdout
    exported = project.run("export", "all.json", "--format", "json")
    assert json.loads(exported.stdout) == read(project.root / "all.json")


def test_shard_without_executions_exits_with_0(project: Project) -> None:
    project.evalset(BAD)
    assert run_shards(project, 3) == [1, 0, 0]
    assert read(project.root / "3.json")["cases"] == []
    assert project.run("merge", "1.json", "2.json", "3.json").returncode == 1


def test_selection_without_cases_fails_every_shard(project: Project) -> None:
    assert run_shards(project, 1) == [3]


def test_edit_between_two_shards_is_named(project: Project) -> None:
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--shard", "1/2", "--json", "1.json")
    agent = project.root / "echo/agent.py"
    agent.write_text(agent.read_text("utf-8") + "\n# edited\n", "utf-8")
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.1}})
    project.run("run", ".", "--shard", "2/2", "--json", "2.json", "--timeout", "9")
    merged = project.run("merge", "1.json", "2.json", "--json", "-")
    assert merged.returncode == 2
    message = json.loads(merged.stdout)["error"]["message"]
    assert "2.json (shard 2/2) is from another run than 1.json: other options: --timeout 9.0, not none; " in message
    assert "other criteria: echo/test_config.json was added" in message
    assert "other files: echo/agent.py differs" in message


def test_reports_and_results_beside_the_agent_do_not_count_as_sources(project: Project) -> None:
    project.evalset(GOOD, BAD, path="echo/talk.evalset.json")
    for index in (1, 2):
        written = f"echo/{index}.json"
        project.run("run", "echo", "--shard", f"{index}/2", "--json", written)
        project.write(f"echo/notes{index}.txt", "an agent wrote this")
    assert project.run("merge", "echo/1.json", "echo/2.json").returncode == 1


def test_shard_runs_its_part_in_the_order_of_the_plan(project: Project) -> None:
    project.evalset(*(case(name) for name in "abcde"))
    run_shards(project, 2)
    found = [list(statuses(read(project.root / f"{index}.json"))) for index in (1, 2)]
    assert found == [["a", "c", "e"], ["b", "d"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shard", "0/4"], "--shard 0/4: K counts from 1 to N"),
        (["--shard", "5/4"], "--shard 5/4: K counts from 1 to N"),
        (["--shard", "2"], "--shard takes K/N, such as 2/4, not '2'"),
        (["--shard", "-1/4"], "--shard takes K/N, such as 2/4, not '-1/4'"),
        (["--shard", "1/2", "--until-sure", "0.5"], "--shard cannot be used with --until-sure"),
        (["--shard", "1/2", "--inject", "matrix"], "--shard cannot be used with --inject matrix"),
        (["--shard", "1/2", "--watch"], "--shard cannot be used with --watch"),
    ],
)
def test_shard_is_refused_for_a_plan_unknown_before_the_run(here: Here, words: list[str], message: str) -> None:
    done = here("run", ".", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_merge_without_shards_is_refused(here: Here) -> None:
    done = here("merge")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no report or folder given" in done.stderr


def test_refused_merge_replaces_an_earlier_report(project: Project) -> None:
    project.evalset(GOOD, BAD)
    run_shards(project, 2)
    assert project.run("merge", "1.json", "2.json", "--json", "all.json").returncode == 1
    assert project.run("merge", "2.json", "--json", "all.json").returncode == 2
    assert read(project.root / "all.json")["error"]["message"] == "missing: shard 1/2"
