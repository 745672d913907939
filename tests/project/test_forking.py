"""Forks of stored conversations of a real google-adk agent."""

from pathlib import Path

import pytest

from tests.run.forking.desk import counted, write_desk
from workbench import Project, UsageFaultError
from workbench.events.events import ForkOf
from workbench.store.database.database import run_path
from workbench.store.execution import CaseRecord
from workbench.store.history.run_list import list_runs
from workbench.store.history.run_names import last_run

pytest.importorskip("google.adk")


async def test_fork_runs_with_the_change_and_does_not_replace_the_verdict(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = write_desk(tmp_path)
    async with Project.open(tmp_path) as project:
        store = await project.run(await project.plan("desk/labels.evalset.json:label")).result()
        ordinary = store.run.run_id
        assert [record.state for record in store.current_records()] == ["failed"]
        assert counted(folder) == ["model", "find_order A-1", "model", "print_label False", "model"]

        instruction = "Print a label for the order {last} quickly."
        fork = await project.fork(case="label", turn=1, call=3, change="instruction", value=instruction, agent="desk")
        await fork.result()
        records = list(store.read_current())
        assert [(record.ref.repeat, record.state) for record in records] == [(n, "passed") for n in (1, 2, 3)]
        assert records[0].planned.fork == ForkOf(ordinary, 1, 0, 3, "instruction", "desk", instruction)
        assert sorted(counted(folder)[5:]) == sorted(["model", "print_label True", "model"] * 3)

        # The verdict of the case stays, and so does its last run.
        assert {(verdict.status, verdict.run_id) for verdict in await project.status()} >= {("failed", ordinary)}
        assert last_run(tmp_path / ".workbench") == run_path(tmp_path / ".workbench", ordinary)
        newest = list_runs(tmp_path / ".workbench").runs[0]
        assert newest.fork == ordinary
        with pytest.raises(UsageFaultError, match="fork"):
            await project.score(newest.run_id)

        # With frozen tools, only models are asked, and a call that the recording does not have is a miss.
        before = len(counted(folder))
        fork = await project.fork(
            case="label", turn=1, call=3, change="instruction", value=instruction, agent="desk", tries=1, frozen=True
        )
        (record,) = (await fork.result()).read_current()
        assert record.error is not None
        assert record.frozen is not None
        assert (record.error.kind, record.frozen.misses) == ("frozen_miss", 1)
        assert counted(folder)[before:] == ["model"]
        with pytest.raises(UsageFaultError, match="there is no such call in turn 1"):
            await project.fork(case="label", turn=1, call=6)

        # An agent that has changed does not repeat the recording: the fork says where, and calls nothing.
        assert {record.state for record in await states(project, "desk/labels.evalset.json:thanks")} == {"failed"}
        source = (folder / "agent.py").read_text("utf-8")
        callback = "    after_tool_callback=lambda tool, args, tool_context, tool_response: {'item': 'pot'},\n"
        (folder / "agent.py").write_text(source.replace("    tools=[", f"{callback}    tools=["), "utf-8")
        before = len(counted(folder))
        fork = await project.fork(case="thanks", turn=2, change="message", value="No.", tries=1)
        (record,) = (await fork.result()).read_current()
        assert record.error is not None
        assert record.error.kind == "fork_diverged"
        assert 'turn 1, event 2: content.parts[0].function_response.response.item was "kettle"' in record.error.message
        assert counted(folder)[before:] == []

        # A fork goes where the runs of the project go.
        (tmp_path / "pyproject.toml").write_text('[tool.agent-workbench]\nplace = "dask://127.0.0.1:1"\n')
        fork = await project.fork(case="thanks", turn=2)
        with pytest.raises(UsageFaultError, match=r"nothing was sent to dask://127\.0\.0\.1:1"):
            await fork.result()


async def states(project: Project, target: str) -> list[CaseRecord]:
    return list((await project.run(await project.plan(target)).result()).read_current())
