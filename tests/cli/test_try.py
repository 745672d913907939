"""`try` from the shell: what it says about changes, what it leaves alone, and how it ends."""

import json
import signal
import sqlite3
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Here
from tests.cli.projects import Project, case
from tests.repositories import git
from tests.schemas import SCHEMAS
from tests.tried import TriedProject
from tests.worker.client import wait_until
from workbench.cli.try_command import try_command

_DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let copies of variants be below the folder `scratch`."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def desk(tmp_path: Path, _scratch: None) -> TriedProject:
    return TriedProject(tmp_path / "project", tmp_path / "counts")


@pytest.fixture
def some(tmp_path: Path, _scratch: None) -> TriedProject:
    """A project with as many cases as prove a change, also beside two others."""
    return TriedProject(tmp_path / "project", tmp_path / "counts", cases=8)


@pytest.fixture
def few(tmp_path: Path, _scratch: None) -> TriedProject:
    """A project with four cases, for tests that need no proof."""
    return TriedProject(tmp_path / "project", tmp_path / "counts", cases=4)


def scratch(desk: TriedProject) -> list[str]:
    return [path.name for path in (desk.root.parent / "scratch").iterdir()]


def state_of(root: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in root.rglob("*") if path.is_file() and ".workbench" not in path.parts]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_better_prompt_is_reported_as_better(desk: TriedProject, tmp_path: Path) -> None:
    desk.prompt("name the day")
    report = tmp_path / "report.json"
    code, out, err = desk.said("-q", "--json", str(report))
    found = json.loads(report.read_text())
    names = [(one["name"], one["pass_rate"], one.get("result")) for one in found["variants"]]
    assert names == [("HEAD", pytest.approx(2 / 3), None), ("working tree", 1.0, "better")]
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[1].split() == ["passed", "change", "from", "HEAD", "latency"]
    assert lines[2].startswith("HEAD           66.6%")
    assert lines[3].startswith("working tree  100.0%  +33.3 points [")
    assert lines[3].endswith("better")
    assert "working tree against HEAD   12 cases better   0 worse   0 the same" in lines
    assert "✗→✓ case_0   2/3 → 3/3   answer shares few words with the expected one" in lines
    assert "… 2 more" in lines
    assert lines[-1].startswith("better: these 12 cases show it (p < 0.001), probably by ")


def test_worse_prompt_fails_the_gate(some: TriedProject) -> None:
    some.prompt("be brief")
    code, found = some.tried("--gate")
    assert (code, found["variants"][1]["result"]) == (1, "worse")
    assert found["variants"][1]["change"] == pytest.approx(-1 / 3)
    assert found["variants"][1]["cases"][0]["before"] == [2, 3]
    assert found["variants"][1]["cases"][0]["after"] == [1, 3]


def test_edit_without_effect_is_unclear_and_names_the_detectable_difference(some: TriedProject, tmp_path: Path) -> None:
    some.prompt("You are very kind.")
    report = tmp_path / "report.json"
    code, out, _ = some.said("-q", "--gate", "--json", str(report))
    changed = json.loads(report.read_text())["variants"][1]
    assert (code, changed["result"], changed["change"]) == (0, "unclear", 0)
    assert 0 < changed["would_show"] < 0.5
    assert "unclear: these 8 cases show no difference. They would show a difference of" in out
    assert "in 8 of 10 tries; for 5 points you need about" in out


def test_try_prints_its_plan_changes_no_file_and_writes_a_valid_report(few: TriedProject) -> None:
    committed = json.loads((_DOCS / "try.schema.json").read_text("utf-8"))
    assert committed == SCHEMAS["try"](), "python -m tests.schemas try > docs/try.schema.json"
    few.prompt("name the day")
    before = state_of(few.root)
    code, out, err = few.said("--runs", "1", "--json", "-")
    assert code == 0
    first = err.splitlines()
    assert first[0].startswith("2 variants × 4 cases × 1 run (8 in all), cost unknown until they have run")
    assert first[1].startswith("  HEAD          commit ")
    assert first[2] == "  working tree  1 file differs: desk/prompt.md"
    assert first[3] == "  In all of them: cases, criteria, .env and interpreter of the working tree"
    assert state_of(few.root) == before
    assert not (few.root / ".workbench").exists()
    assert scratch(few) == []
    found = json.loads(out)
    jsonschema.validate(found, committed)
    assert set(found) == {"schema", "against", "cases", "runs", "variants"}
    first, second = found["variants"]
    assert set(first) == {"name", "pass_rate", "cost", "seconds", "left_out"}
    more = {"change", "interval", "p", "result", "would_show", "criteria", "cases"}
    assert set(second) == {*first, *more}
    assert set(second["cases"][0]) == {"agent", "evalset_file", "eval_id", "before", "after"}
    assert second["cases"][0]["agent"] == "desk"
    assert second["criteria"][0]["name"] == "response_match_score"


def test_verdicts_of_variants_replace_no_verdict_of_the_working_tree(few: TriedProject) -> None:
    assert few.run("run", ".", environment=few.environment()).returncode == 0
    database = few.root / ".workbench/runs.db"
    before = few.run("status", "--json").stdout
    few.prompt("name the day")
    stale = few.run("status", "--json").stdout
    few.tried("--runs", "1")
    assert few.run("status", "--json").stdout == stale != before
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)


def test_swap_set_and_folder_are_variants_of_the_working_tree(some: TriedProject, tmp_path: Path) -> None:
    other = some.write("drafts/clear.md", "name the day")
    beside = tmp_path / "beside"
    beside.mkdir()
    for file in ("agent.py", "prompt.md"):
        (beside / file).write_text((some.root / "desk" / file).read_text())
    (beside / "prompt.md").write_text("be brief")
    some.commit()
    words = ("--swap", f"desk/prompt.md={other}", "--set", "TONE=clear", "--variant", f"short={beside}")
    code, found = some.tried(*words)
    assert code == 0
    names = [(one["name"], one.get("result")) for one in found["variants"]]
    assert names == [
        ("HEAD", None),
        (f"desk/prompt.md={other}", "better"),
        ("TONE=clear", "better"),
        ("short", "worse"),
    ]


def test_several_revisions_are_compared_with_the_first(some: TriedProject) -> None:
    for text in ("name the day", "be brief"):
        some.prompt(text)
        some.commit()
    words = ("--against", "HEAD~2", "--against", "HEAD~1", "--against", "HEAD")
    code, found = some.tried(*words)
    names = [(one["name"], one.get("result")) for one in found["variants"]]
    assert (code, names) == (0, [("HEAD~2", None), ("HEAD~1", "better"), ("HEAD", "worse")])


def test_grid_tries_every_combination(few: TriedProject) -> None:
    few.write("drafts/clear.md", "name the day")
    few.commit()
    words = ("--grid", "--runs", "1", "--swap", "desk/prompt.md=drafts/clear.md", "--set", "A=1", "--set", "A=2")
    _, found = few.tried(*words)
    clear = "desk/prompt.md=drafts/clear.md"
    names = [one["name"] for one in found["variants"]]
    assert names == ["HEAD", "A=1", "A=2", clear, f"{clear}, A=1", f"{clear}, A=2"]


@pytest.mark.parametrize(
    "word", ["API_TOKEN=abc", "API_TOKEN=a-very-long-secret-value", "DB_URL=pg://u:long-secret-pw@h"]
)
def test_secret_in_a_variable_is_neither_shown_nor_stored(few: TriedProject, word: str, tmp_path: Path) -> None:
    name, _, value = word.partition("=")
    secret = value if name == "API_TOKEN" else "long-secret-pw"
    agent = few.root / "desk/agent.py"
    agent.write_text(
        agent.read_text().replace('f"You said {message}" if', f'f"You said {{os.environ.get({name!r})}}" if')
    )
    files = {option: tmp_path / option.strip("-") for option in ("--json", "--markdown", "--junit")}
    outputs = [text for option, file in files.items() for text in (option, str(file))]
    code, out, err = few.said("--runs", "1", "--set", word, *outputs, "--print-detailed-results")
    assert code == 0
    texts = [out, err, *(file.read_text() for file in files.values())]
    assert f"{name}=" in texts[0]
    assert texts[3].startswith("<!-- agent-workbench -->\n"), "a workflow finds the comment by its first line"
    if len(secret) > 7:
        assert not any(secret in text for text in texts)
    assert f"{name}={secret}" not in "".join(texts)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "nothing to compare: apart from evalsets and criteria, the working tree is like HEAD"),
        (("--against", "none"), "--against none: there is no such commit"),
        (("--set", "secret-without-name"), "--set takes NAME=VALUE"),
        (("--swap", "desk/none.md=a"), "--swap desk/none.md: there is no such file in the project"),
        (("--swap", "desk/prompt.md=none"), "there is no file none"),
        (("--swap", "/etc/passwd=desk/prompt.md"), "--swap /etc/passwd: it is not in the project"),
        (("--variant", "new=none"), "there is no folder none"),
        (("--model", ""), "--model needs the name of a model"),
        (("--max-cost", "1"), "--max-cost needs prices"),
        (("--max-cost", "-1"), "--max-cost must be an amount above 0"),
        (("--runs", "0"), "--runs must be at least 1"),
        (("--set", "A=1", "--set", "A=1"), "two variants are called A=1"),
        (("--grid", *(word for n in range(9) for word in ("--set", f"V{n}=1"))), "511 variants are too many"),
        (("--watch",), "No such option '--watch'"),
        (("--shard", "1/2"), "No such option '--shard'"),
    ],
)
def test_refusal_gives_the_reason_before_anything_runs(few: TriedProject, words: tuple[str, ...], why: str) -> None:
    code, out, err = few.said(*words)
    assert (code, out) == (2, "")
    assert why in err
    assert "secret-without-name" not in err
    assert scratch(few) == []


def test_refused_try_leaves_no_older_report(few: TriedProject) -> None:
    report = few.write("report.json", "older")
    assert few.said("--max-cost", "1", "--json", "report.json")[0] == 2
    assert json.loads(report.read_text())["error"]["message"] == "--max-cost needs prices"


def test_changed_evalset_alone_does_not_count_as_a_difference(few: TriedProject) -> None:
    few.evalset(case("other", "other"), path="desk/orders.evalset.json")
    few.write("desk/test_config.json", {"criteria": {"response_match_score": 0.5}})
    code, _, err = few.said()
    assert (code, "apart from evalsets and criteria" in err) == (2, True)


def test_cases_come_from_the_working_tree_even_if_the_revision_lacks_them(few: TriedProject) -> None:
    few.evalset(case("new", "new"), path="desk/more.evalset.json")
    (few.root / "desk/orders.evalset.json").unlink()
    few.prompt("name the day")
    _, found = few.tried()
    assert [one["eval_id"] for one in found["variants"][1]["cases"]] == ["new"]
    assert found["variants"][1]["cases"][0]["before"] == [2, 3]


def test_agent_that_the_revision_lacks_is_named(few: TriedProject) -> None:
    git(few.root, "mv", "desk", "front")
    code, _, err = few.said()
    assert code == 2
    assert "HEAD has no agent in front" in err
    assert "renamed or moved" in err


def test_revision_whose_agent_cannot_be_read_is_refused_with_the_line(few: TriedProject) -> None:
    agent = few.root / "desk/agent.py"
    good = agent.read_text()
    agent.write_text("def (")
    few.commit()
    agent.write_text(good)
    code, _, err = few.said()
    assert code == 2
    assert "HEAD has no agent in desk. desk/agent.py: not valid Python (line 1: invalid syntax)" in err
    assert "renamed" not in err


def test_without_git_or_a_commit_variants_of_the_working_tree_can_be_tried(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = Project(tmp_path / "plain")
    plain.evalset(case("good"))
    done = plain.run("try")
    assert (done.returncode, "nothing to compare with" in done.stderr) == (2, True)
    done = plain.run("try", "--against", "HEAD")
    assert (done.returncode, "is not in a git repository" in done.stderr) == (2, True)
    (plain.root / ".git").rmdir()
    git(plain.root, "init", "-q")
    done = plain.run("try", "--against", "HEAD")
    assert (done.returncode, "has no commit yet" in done.stderr) == (2, True)
    done = plain.run("try", "--set", "A=1", "--runs", "1", "--json", "-")
    assert [one["name"] for one in json.loads(done.stdout)["variants"]] == ["working tree", "A=1"]


def test_environment_file_and_files_that_git_ignores_come_from_the_working_tree(few: TriedProject) -> None:
    few.write(".gitignore", ".workbench\n.env\ndata/\n")
    agent = few.root / "desk/agent.py"
    read = 'Path(HERE / "data/words.txt").read_text()\n    assert os.environ["FROM_ENV"] == "yes"\n'
    assert_env = f'    prompt = {read}    assert (HERE / ".env").read_text()\n    prompt ='
    agent.write_text(agent.read_text().replace("    prompt =", assert_env, 1))
    few.commit()
    few.write("desk/.env", "FROM_ENV=yes\n")
    few.write("desk/data/words.txt", "ignored")
    assert few.run("run", ".", environment=few.environment()).returncode == 0
    few.prompt("name the day")
    _, found = few.tried()
    assert [one["left_out"] for one in found["variants"]] == [0, 0]


def test_variant_without_a_judged_case_ends_with_3(few: TriedProject) -> None:
    few.write("desk/prompt.md", "name the day")
    agent = few.root / "desk/agent.py"
    agent.write_text("import none\n\n" + agent.read_text())
    code, found = few.tried("--gate", "--runs", "1")
    changed = found["variants"][1]
    assert (code, changed["pass_rate"], changed["left_out"], changed["result"]) == (3, None, 4, "unclear")
    code, out, _ = few.said("--runs", "1")
    assert code == 3
    assert "Left out in working tree: 4 errors" in out
    assert "unclear: no case was judged both in HEAD and in working tree." in out


def test_try_replays_recorded_tools_and_calls_only_the_missing_ones(few: TriedProject) -> None:
    agent = """
import os, pathlib

def find(number):
    with open(pathlib.Path(os.environ["COUNTS"], "calls"), "a") as calls:
        calls.write(f"{number} ")
    return "shipped"

def root_agent(message, session):
    return f"You said {message}" if session.tool("find", {"number": NUMBER}, find) else ""
"""
    few.write("desk/agent.py", agent.replace("NUMBER", "message"))
    assert few.run("run", ".", environment=few.environment()).returncode == 0
    assert few.run("freeze", "last").returncode == 0
    few.commit()
    calls = few.root.parent / "counts/calls"
    few.write("desk/agent.py", agent.replace("NUMBER", "message.replace('3', '4')"))
    code, found = few.tried("--frozen", "--on-miss", "live", "--runs", "1")
    assert (code, [one["left_out"] for one in found["variants"]]) == (0, [0, 0])
    assert calls.read_text() == "order 4 "
    code, found = few.tried("--frozen", "--runs", "1")
    assert (code, [one["left_out"] for one in found["variants"]]) == (0, [0, 1])
    assert not calls.exists()


@pytest.mark.usefixtures("warm_programs")
def test_interrupted_try_shows_the_cases_decided_so_far(desk: TriedProject, tmp_path: Path) -> None:
    desk.prompt("name the day")
    agent = desk.root / "desk/agent.py"
    agent.write_text(agent.read_text().replace("    prompt =", "    import time; time.sleep(0.2)\n    prompt =", 1))
    report = tmp_path / "report.json"
    markdown = tmp_path / "report.md"
    words = ("try", "--concurrency", "2", "--json", str(report), "--markdown", str(markdown))
    process = desk.start(*words, environment=desk.environment())
    assert process.stdout is not None
    for _ in range(8):
        assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, b"Stopped after " in out) == (130, True), err
    count, _, planned, *_ = out.decode().split("Stopped after ")[1].split()
    assert 0 < int(count) < int(planned) == 72, "cancelled executions did not run"
    assert markdown.read_text().splitlines()[1] == f"Stopped after {count} of 72 runs: interrupted."
    found = json.loads(report.read_text())
    assert found["stopped"] == "interrupted"
    assert sum(case["before"][1] for case in found["variants"][1]["cases"]) > 0
    assert scratch(desk) == []


@pytest.mark.usefixtures("warm_programs")
def test_killed_try_leaves_no_copy(desk: TriedProject) -> None:
    desk.prompt("name the day")
    agent = desk.root / "desk/agent.py"
    agent.write_text(agent.read_text().replace("    prompt =", "    import time; time.sleep(0.2)\n    prompt =", 1))
    process = desk.start("try", "--concurrency", "2", environment=desk.environment())
    assert process.stdout is not None
    assert process.stdout.readline()
    assert scratch(desk)
    process.kill()
    process.communicate()
    wait_until(lambda: not scratch(desk))


def test_help_names_every_option_once(here: Here) -> None:
    shown = here("try", "--help").stdout
    rows = [line.split()[0].rstrip(",") for line in shown.splitlines() if line.startswith("  -")]
    options = {option.opts[0] for option in try_command.params if not getattr(option, "hidden", True)}
    # Each try starts afresh, so `--fresh` is accepted, but not in the help.
    assert sorted(rows) == sorted([*(options - {"--fresh"}), "-h"])
