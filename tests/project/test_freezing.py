"""Freezing of cases on the screen."""

from pathlib import Path

from tests.cli.projects import GOOD, Project
from tests.run.recordings.recordings import recording
from workbench.editing.capture import Choice, of_turns, recording_of
from workbench.files.folders import state_dir
from workbench.project.freezing import freezing_of_cases
from workbench.project.project import Project as OpenProject
from workbench.run.recordings.recording import ToolCall
from workbench.store.details import read_details
from workbench.ui.chat.conversation import captured_from_record, with_recording

AGENT = """
def root_agent(message, session):
    session.tool("find", {"order": "A-18"}, lambda order: {"status": "late"})
    return f"You said {message}"
"""


async def test_shown_cases_are_frozen_with_the_calls_and_origin_of_their_run(tmp_path: Path) -> None:
    files = Project(tmp_path)
    files.write("echo/agent.py", AGENT)
    files.evalset(GOOD)
    async with OpenProject.open(tmp_path) as project:
        store = await project.run(await project.plan()).result()
        records = list(store.current_records())
    (case,) = freezing_of_cases(records, tmp_path, state_dir(tmp_path)).cases
    assert case.recording is not None
    assert [call.answer for call in case.recording.calls] == [{"status": "late"}]
    assert case.recording.origin.run == records[0].run_id
    assert case.recording.origin.at.endswith("Z")
    (lost,) = freezing_of_cases(records, tmp_path, tmp_path / "gone").cases
    assert lost.recording is not None
    assert "not available" in lost.recording.calls[0].lost


async def test_case_created_from_a_run_gets_the_recording_of_the_run(tmp_path: Path) -> None:
    files = Project(tmp_path)
    files.write("echo/agent.py", AGENT)
    files.evalset(GOOD)
    async with OpenProject.open(tmp_path) as project:
        store = await project.run(await project.plan()).result()
        (record,) = store.current_records()
        state = state_dir(tmp_path)
        plain = captured_from_record(read_details(record), None, "echo")
        first = with_recording(plain, read_details(record), tmp_path, state)
        assert not first.keeps_recording, "the case has none, so the user chooses it"
        assert (await project.freeze()).contents
    captured = with_recording(plain, read_details(record), tmp_path, state)
    assert captured.keeps_recording
    made = recording_of(captured, Choice("kept", frozenset({0})))
    assert made is not None
    assert (made.eval_id, [call.answer for call in made.calls]) == ("kept", [{"status": "late"}])
    assert with_recording(plain, read_details(record), tmp_path / "elsewhere", tmp_path / "gone").recording is not None


def test_recorded_calls_of_answered_turns_are_numbered_as_in_the_kept_case() -> None:
    made = of_turns(recording(calls=tuple(ToolCall(turn, "desk", "f", {"turn": turn}) for turn in (1, 2, 3))), [1, 3])
    assert [(call.turn, call.args["turn"]) for call in made.calls] == [(1, 1), (2, 3)]
