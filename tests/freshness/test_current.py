"""The current inputs of a case, and the names of changed inputs."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.workspace import open_workspace
from workbench.freshness import agent_inputs
from workbench.freshness.agent_inputs import packages_bundle
from workbench.freshness.current import CurrentInputs, Options, PastInputs
from workbench.freshness.staleness import compare
from workbench.store.digests import Digests, project_digests
from workbench.store.inputs import Change, Record, describe

SECRET = "the-secret-of-the-desk-4711"
AGENT = "import os\n\ndef root_agent(message, session):\n    return os.environ['TONE'] + message\n"
TURN = {
    "user_content": {"role": "user", "parts": [{"text": "hello"}]},
    "final_response": {"role": "model", "parts": [{"text": "ok"}]},
}
CASE: dict[str, Any] = {
    "eval_id": "one",
    "conversation": [TURN],
    "session_input": {"app_name": "desk", "user_id": "u", "state": {"tier": "gold"}},
}
PLAYED: dict[str, Any] = {
    "eval_id": "played",
    "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "Ask.", "user_persona": "NOVICE"},
}
JUDGED = {"threshold": 0.5, "judge_model_options": {"judge_model": "python:shared.judges:strict"}}
CONFIG: dict[str, Any] = {
    "criteria": {"response_match_score": 0.8, "final_response_match_v2": JUDGED},
    "user_simulator_config": {"max_allowed_invocations": 3},
}


class Desk:
    """A project with one agent, and what is compared: the inputs of its first or its simulated case."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".git").mkdir()
        self.write("desk/agent.py", AGENT)
        self.write("desk/prompt.txt", "Be kind.")
        self.write("desk/notes.txt", "nobody reads this")
        self.write("data/a.csv", "1")
        self.write("shared/judges.py", "def strict(question): ...\n")
        self.write("desk/.env", f"GREETING=hello\nGOOGLE_API_KEY={SECRET}\n")
        self.write("desk/test_config.json", CONFIG)
        self.cases(CASE, PLAYED)

    def write(self, name: str, content: Any) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    def cases(self, *cases: dict[str, Any]) -> None:
        self.write("desk/talk.evalset.json", {"eval_set_id": "talk", "eval_cases": list(cases)})

    def config(self, **other: Any) -> None:
        self.write("desk/test_config.json", {**CONFIG, **other})

    def made(self, number: int = 0, *, read: bool = True, timed_out: bool = False) -> PastInputs:
        """Return an execution that read its prompt and listed the data. If `read` is False, its reads are unknown."""
        now, entry = self.now(Options())
        agent = entry.agent
        assert agent is not None
        files = now.files(agent)
        seen = {self.root / "desk/agent.py", self.root / "desk/prompt.txt"} if read else set()
        simulated = number == 1
        first = now.case(entry.document, number, PastInputs(Record("", ())))
        bundles = (
            *(first, *now.criteria(entry.criteria.config, is_simulated=simulated)),
            *(*now.options(timed_out=timed_out), now.owner(agent)),
            *now.other_files(entry.criteria.config, agent, is_simulated=simulated),
            *(*now.environment(agent, files.names_in_sources(seen)), now.packages(agent)),
            files.bundle(seen, [self.root / "data"], everything=not read),
        )
        return PastInputs(Record(entry.relative, bundles), now.text(entry.document, number))

    def now(self, options: Options) -> Any:
        workspace = open_workspace(self.root)
        (entry,) = workspace.evalsets
        return CurrentInputs(self.root, workspace.agents, Digests("salt"), lambda value: value, options), entry

    def changes(self, then: PastInputs, options: Options | None = None) -> tuple[Change, ...]:
        now, entry = self.now(options or Options())
        number = 1 if then.record.names("scenario") else 0
        return compare(then.record, now.record(entry, number, then))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("TONE", "kind")
    monkeypatch.delenv("GREETING", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    return Desk(tmp_path)


def test_unchanged_inputs_are_not_named_and_no_values_are_stored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1):
        then = desk.made(number)
        desk.write("desk/notes.txt", "still nobody")
        desk.write("desk/README.md", "# Desk\n")
        desk.write("data/a.csv", "2")
        monkeypatch.setenv("TERM", "other")
        monkeypatch.setenv("SOMETHING_ELSE", "2")
        assert desk.changes(then) == ()
        kept = json.dumps([bundle.as_json() for bundle in then.record.bundles])
        assert SECRET not in kept
        assert "kind" not in kept


def edited(case: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {**case, **other}


EDITS: dict[str, tuple[int, Callable[[Desk], None], list[str]]] = {
    "a file that was read": (0, lambda d: d.write("desk/prompt.txt", "Be brief."), ["desk/prompt.txt"]),
    "a file that is gone": (0, lambda d: (d.root / "desk/prompt.txt").unlink(), ["desk/prompt.txt"]),
    "a new module": (0, lambda d: d.write("desk/tools.py", "x = 1\n"), ["desk/tools.py is new"]),
    "a file in a listed folder": (0, lambda d: d.write("data/b.csv", "1"), ["data/b.csv is new"]),
    "a variable of .env": (
        0,
        lambda d: d.write("desk/.env", f"GREETING=hi\nGOOGLE_API_KEY={SECRET}\n"),
        [".env GREETING"],
    ),
    "a new variable of .env": (
        0,
        lambda d: d.write("desk/.env", f"MODEL_NAME=x\nGREETING=hello\nGOOGLE_API_KEY={SECRET}\n"),
        [".env MODEL_NAME"],
    ),
    "what the user says": (
        0,
        lambda d: d.cases(edited(CASE, conversation=[{**TURN, "user_content": {"parts": [{"text": "bye"}]}}])),
        ["case: user messages"],
    ),
    "what is expected": (
        0,
        lambda d: d.cases(edited(CASE, conversation=[{**TURN, "final_response": {"parts": [{"text": "no"}]}}])),
        ["expected: final_response"],
    ),
    "rubrics of the case": (
        0,
        lambda d: d.cases(edited(CASE, rubrics=[{"rubric_id": "r", "rubric_content": {"text_property": "Kind."}}])),
        ["expected: rubrics"],
    ),
    "the session": (
        0,
        lambda d: d.cases(edited(CASE, session_input={**CASE["session_input"], "state": {"tier": "tin"}})),
        ["session: state"],
    ),
    "the persona": (
        1,
        lambda d: d.cases(
            CASE,
            edited(PLAYED, conversation_scenario={**PLAYED["conversation_scenario"], "user_persona": "EXPERT"}),
        ),
        ["scenario: user_persona"],
    ),
    "the simulated user": (
        1,
        lambda d: d.config(user_simulator_config={"max_allowed_invocations": 5}),
        ["simulator: max_allowed_invocations"],
    ),
    "the simulated user of another case": (0, lambda d: d.config(user_simulator_config={"model": "x"}), []),
    "a threshold": (
        0,
        lambda d: d.config(criteria={**CONFIG["criteria"], "response_match_score": 0.1}),
        ["criteria: response_match_score threshold"],
    ),
    "a new criterion": (
        0,
        lambda d: d.config(criteria={**CONFIG["criteria"], "safety_v1": 0.8}),
        ["criteria: safety_v1"],
    ),
    "a judge": (
        0,
        lambda d: d.config(
            criteria={**CONFIG["criteria"], "final_response_match_v2": {**JUDGED, "judge_model_options": {}}}
        ),
        ["judge: final_response_match_v2 judge_model", "function shared/judges.py"],
    ),
    "a function that judges": (
        0,
        lambda d: d.write("shared/judges.py", "def strict(question): pass\n"),
        ["function shared/judges.py"],
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_only_the_changed_input_is_named(desk: Desk, edit: str) -> None:
    number, work, said = EDITS[edit]
    then = desk.made(number)
    work(desk)
    assert [describe(change) for change in desk.changes(then)] == said


def test_setting_a_variable_that_the_sources_name_is_a_change(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONE")
    then = desk.made()
    monkeypatch.setenv("TONE", "curt")
    assert [describe(change) for change in desk.changes(then)] == ["environment TONE"]


def test_change_of_one_variable_among_many_unset_variables_is_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_inputs, "_MOST_NAMES", 2)
    desk.write("desk/names.py", "NAMES = 'A_FIRST', 'A_SECOND', 'Z_LAST'\n")
    then = desk.made()
    assert desk.changes(then) == ()
    monkeypatch.setenv("Z_LAST", "1")
    assert [change.name for change in desk.changes(then)] == ["Z_LAST"]
    monkeypatch.delenv("TONE")
    assert [change.name for change in desk.changes(then)] == ["TONE", "Z_LAST"]


def test_changed_timeout_affects_only_cases_that_timed_out(desk: Desk) -> None:
    other = Options(timeout=3.0)
    assert desk.changes(desk.made(), other) == ()
    (change,) = desk.changes(desk.made(timed_out=True), other)
    assert describe(change) == "--timeout"
    (change,) = desk.changes(desk.made(), Options(isolation="run"))
    assert describe(change) == "--isolation"


def test_change_in_a_module_imported_by_a_judge_function_is_found(desk: Desk) -> None:
    desk.write("shared/judges.py", "from shared import wording\n\n\ndef strict(question):\n    pass\n")
    desk.write("shared/wording.py", "X = 1\n")
    then = desk.made()
    desk.write("shared/wording.py", "X = 2\n")
    assert [describe(change) for change in desk.changes(then)] == ["function shared/wording.py"]


def test_execution_with_unknown_reads_depends_on_the_whole_folder(desk: Desk) -> None:
    then = desk.made(read=False)
    desk.write("desk/notes.txt", "read by nobody?")
    desk.write("desk/more/new.txt", "x")
    assert [describe(change) for change in desk.changes(then)] == ["desk/more/new.txt is new", "desk/notes.txt"]


def test_evalset_without_its_agent_has_a_changed_owner(desk: Desk) -> None:
    then = desk.made()
    (desk.root / "desk/agent.py").unlink()
    assert "owner: agent" in [describe(change) for change in desk.changes(then)]


def test_installed_packages_are_recorded_with_versions(tmp_path: Path) -> None:
    site = tmp_path / ".venv/lib/python3.12/site-packages"
    for name in (
        "google_adk-2.13.0.dist-info",
        "old-1.0-py3.12.egg-info",
        "Mine_Own-0.1.dist-info",
        "~gone-1.dist-info",
    ):
        (site / name).mkdir(parents=True)
    source = {"url": (tmp_path / "mine").as_uri(), "dir_info": {"editable": True}}
    (site / "Mine_Own-0.1.dist-info/direct_url.json").write_text(json.dumps(source), encoding="utf-8")

    def versions(root: Path) -> dict[str, str]:
        found = packages_bundle(tmp_path / ".venv/bin/python", root).inputs["packages"]
        return {name: value for name, value in found.items() if name not in ("interpreter", "workbench")}

    assert versions(tmp_path) == {"google-adk": "2.13.0", "mine-own": "in place", "old": "1.0"}
    assert versions(tmp_path / "elsewhere")["mine-own"] == "0.1"


def test_verdicts_of_other_machines_depend_only_on_variables_sent_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = open_workspace(desk.root)
    (entry,) = workspace.evalsets
    (agent,) = workspace.agents
    monkeypatch.setenv("SENT", "1")
    monkeypatch.setenv("GEMINI_STAYS", "1")

    def current(sent: tuple[str, ...] | None) -> CurrentInputs:
        return CurrentInputs(desk.root, [agent], Digests("salt"), lambda value: value, Options(sent=sent))

    here = Record(entry.relative, current(None).environment(agent, {"GEMINI_STAYS"}))
    there = Record(entry.relative, current(("SENT",)).environment(agent, {"GEMINI_STAYS"}))
    monkeypatch.setenv("GEMINI_STAYS", "2")

    def changes(then: Record) -> list[str]:
        # Another place of the newest run changes nothing.
        now = current(None).environment(agent, then.names("environment"), then)
        return [change.name for change in compare(then, Record(entry.relative, now))]

    assert changes(here) == ["GEMINI_STAYS"]
    assert changes(there) == []
    monkeypatch.setenv("SENT", "2")
    assert changes(there) == ["SENT"]


def test_digest_of_a_large_file_depends_on_its_last_byte(tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(b"\0" * (5 << 20))
    before = Digests("salt").file(file)
    with file.open("r+b") as content:
        content.seek(-1, os.SEEK_END)
        content.write(b"1")
    assert Digests("salt").file(file) != before
    assert Digests("other").file(file) != Digests("salt").file(file)


def test_salt_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    salt = project_digests(tmp_path).salt_id
    assert project_digests(tmp_path).salt_id == salt
    assert (tmp_path / "runs.db").stat().st_mode & 0o777 == 0o600
    assert project_digests(tmp_path / "not there").salt_id != salt
