"""Trials as the screen uses them: plans, budgets, models, files of variants and how they are kept."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import case, python_path
from tests.function_judge import OPTIONS, write_judge
from tests.repositories import git
from tests.tried import TriedProject
from workbench.editing.saving import Saver
from workbench.events.events import CaseFinished, CaseStarted, Event
from workbench.files.prices import Price, Prices
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.project.variants import trial as trial_module
from workbench.project.variants.report import TryReport, report
from workbench.project.variants.trial import Trial, open_trial
from workbench.project.variants.variant import Wanted
from workbench.store.details import read_details

_SAMPLES = Path(__file__).parents[3] / "sample_agents"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TriedProject:
    made = TriedProject(tmp_path / "project", tmp_path / "counts", cases=4)
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.chdir(made.root)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


@asynccontextmanager
async def opened(root: Path, options: RunOptions | None = None, **wanted: Any) -> AsyncIterator[tuple[Project, Trial]]:
    async with Project.open(root) as project:
        plan = await project.plan(options=options or RunOptions(runs=2, concurrency=1))
        trial = await asyncio.to_thread(open_trial, plan, Wanted(here=root, **wanted))
        try:
            yield project, trial
        finally:
            trial.close()


async def result_of(root: Path, options: RunOptions | None = None, **wanted: Any) -> TryReport:
    async with opened(root, options, **wanted) as (project, trial):
        await trial.run(project).execute()
        return report(trial.layout, trial.store.current_records(), trial.costs)


async def test_variants_run_case_by_case_and_take_turns_at_being_first(desk: TriedProject) -> None:
    desk.prompt("name the day")
    started: list[tuple[int, str, int]] = []
    async with opened(desk.root) as (project, trial):

        def publish(event: Event) -> None:
            if isinstance(event, CaseStarted):
                variant, ref = trial.layout.place(event.case)
                started.append((variant, ref.eval_id, event.case.repeat))

        await trial.run(project, publish).execute()
    assert started[:4] == [(0, "case_0", 1), (1, "case_0", 1), (1, "case_1", 1), (0, "case_1", 1)]
    assert [repeat for _, _, repeat in started] == [1] * 8 + [2] * 8


async def test_large_file_that_git_ignores_is_named_and_not_copied(
    desk: TriedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(".gitignore", ".workbench\ndata/\n")
    desk.commit()
    desk.prompt("name the day")
    files = [desk.write("data/small.txt", "x"), desk.write("data/large.txt", "x" * 2_000)]
    monkeypatch.setattr(trial_module, "_COPIED", 1_000)
    async with Project.open(desk.root) as project:
        trial = await asyncio.to_thread(open_trial, await project.plan(), Wanted(here=desk.root), files)
        notices = [notice.message for notice in trial.plan.notices]
        copied = [path.name for path in trial.plan.agents["desk (HEAD)"].root.glob("data/*")]
        trial.close()
    assert copied == ["small.txt"]
    assert "not copied, ignored by git and larger than 1,000 bytes: data/large.txt (1 kB)" in notices


async def test_missing_folder_for_copies_is_refused(
    desk: TriedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.prompt("name the day")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(UsageFaultError, match=r"no folder for copies can be made: .*: No such file") as refused:
        await result_of(desk.root)
    assert "TMPDIR" in refused.value.hint


async def test_closed_trial_does_not_recreate_its_folder(desk: TriedProject) -> None:
    desk.prompt("name the day")
    async with opened(desk.root) as (project, trial):
        trial.close()
        with pytest.raises(RuntimeError, match="the trial is closed"):
            trial.run(project)


async def test_report_can_be_made_during_the_trial(desk: TriedProject) -> None:
    desk.prompt("name the day")
    counts = []
    async with opened(desk.root) as (project, trial):

        def publish(event: Event) -> None:
            if isinstance(event, CaseFinished):
                found = report(trial.layout, trial.store.current_records(), trial.costs)
                counts.append(sum(one.judged for one in found.variants))

        await trial.run(project, publish).execute()
    assert counts == list(range(1, 17))


async def test_conversations_of_a_case_can_be_read_for_each_variant(desk: TriedProject) -> None:
    desk.prompt("name the day")
    async with opened(desk.root) as (project, trial):
        await trial.run(project).execute()
        records = list(trial.store.current_records())
        found = trial.executions(records, 1, trial.layout.cases[0])
        assert [one.ref.repeat for one in found] == [1, 2]
        actual = read_details(found[0]).turns[0].actual
        assert actual is not None
        assert actual["final_response"]["parts"] == [{"text": "You said order 0"}]


async def test_changed_files_of_a_variant_can_be_shown_kept_and_undone(desk: TriedProject) -> None:
    desk.write("drafts/clear.md", "name the day\n")
    (desk.root / "desk/prompt.md").write_bytes(b"You are kind.\r\nAnd late.\n")
    desk.commit()
    async with opened(desk.root, swaps=[("desk/prompt.md", "drafts/clear.md")]) as (_, trial):
        (change,) = trial.changed_files(1)
        assert (change.path, change.after) == ("desk/prompt.md", b"name the day\n")
        assert "+name the day" in change.diff()
        saver = Saver(desk.root / ".workbench", desk.root)
        saver.save("keep the variant", trial.kept(1))
        assert (desk.root / "desk/prompt.md").read_bytes() == b"name the day\n"
        saver.undo()
        assert (desk.root / "desk/prompt.md").read_bytes() == b"You are kind.\r\nAnd late.\n"
        assert trial.kept(0) == {}


async def test_keeping_a_revision_restores_its_files_but_not_its_cases(desk: TriedProject) -> None:
    desk.prompt("name the day")
    desk.write("desk/new.py", "x = 1\n")
    desk.evalset(case("other"), path="desk/orders.evalset.json")
    async with opened(desk.root) as (_, trial):
        kept = trial.kept(0)
    assert kept == {
        desk.root / "desk/prompt.md": (b"name the day", b"You are kind."),
        desk.root / "desk/new.py": (b"x = 1\n", None),
    }


async def test_file_that_an_agent_changed_during_the_try_is_not_kept(desk: TriedProject) -> None:
    agent = (desk.root / "desk/agent.py").read_text()
    write = "\nfrom pathlib import Path\nPath(__file__).with_name('prompt.md').write_text('of the agent')\n"
    (desk.root / "desk/agent.py").write_text(agent + write)
    desk.commit()
    desk.prompt("name the day")
    async with opened(desk.root, RunOptions(runs=1)) as (project, trial):
        await trial.run(project).execute()
        with pytest.raises(UsageFaultError, match=r"desk/prompt\.md: an agent changed it during the try"):
            trial.kept(0)


async def test_variant_is_not_written_through_a_link_out_of_the_project(desk: TriedProject, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/prompt.md").write_text("theirs")
    desk.write("extra/prompt.md", "old")
    desk.commit()
    beside = shutil.copytree(desk.root, tmp_path / "beside", symlinks=True)
    (beside / "extra/prompt.md").write_text("new")
    async with opened(desk.root, folders=[("beside", str(beside))]) as (_, trial):
        shutil.rmtree(desk.root / "extra")
        (desk.root / "extra").symlink_to(tmp_path / "outside")
        with pytest.raises(UsageFaultError, match="leads out of the project"):
            trial.kept(1)


@pytest.mark.parametrize("works", [True, False], ids=["judge", "judge that fails"])
async def test_limit_of_judge_calls_ends_the_run_and_keeps_its_verdicts(desk: TriedProject, works: bool) -> None:
    write_judge(desk.root)
    options = OPTIONS if works else {**OPTIONS, "judge_model": "python:judges:none"}
    criterion = {"threshold": 0.5, "judge_model_options": options}
    desk.write("desk/test_config.json", {"criteria": {"final_response_match_v2": criterion}})
    desk.commit()
    desk.prompt("name the day")
    async with opened(desk.root, RunOptions(runs=2, concurrency=1, max_judge_calls=3)) as (project, trial):
        await trial.run(project).execute()
        records = list(trial.store.current_records())
        assert trial.stopped == "judge calls"
    ended = [one for one in records if one.state != "cancelled"]
    # The answers of both variants to a case are the same here, so the judge is asked once for both. An end is noticed
    # when it is stored, so a few more start.
    assert (5 if works else 3) <= len(ended) <= (12 if works else 10)
    assert sum(one.usage.judge_calls for one in ended) <= 3
    assert report(trial.layout, records).could_run == works


async def test_limit_of_0_judge_calls_allows_criteria_without_a_judge(desk: TriedProject) -> None:
    desk.prompt("name the day")
    async with opened(desk.root, RunOptions(runs=1, max_judge_calls=0)) as (project, trial):
        await trial.run(project).execute()
        states = {one.state for one in trial.store.current_records()}
        assert (trial.stopped, states <= {"passed", "failed"}) == ("", True)


PRICED = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        text = str(llm_request.contents[-1].parts[0].text)
        clear = "name the day" in str(llm_request.config.system_instruction) or llm_request.model == "clever"
        yield LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text=f"You said {text}" if clear else "Later.")]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=1000, candidates_token_count=0, total_token_count=1000
            ),
        )

root_agent = LlmAgent(name="desk", model=Scripted(), instruction="INSTRUCTION")
"""


@pytest.fixture
def adk(desk: TriedProject) -> TriedProject:
    desk.write("desk/agent.py", PRICED)
    desk.commit()
    return desk


async def test_model_is_set_in_the_process_of_its_variant_only(adk: TriedProject) -> None:
    found = await result_of(adk.root, RunOptions(runs=1), models=["clever", "other"])
    assert [(one.name, one.pass_rate) for one in found.variants] == [
        ("HEAD", 0.0),
        ("model=clever", 1.0),
        ("model=other", 0.0),
    ]


async def test_model_of_an_agent_in_plain_python_is_refused_with_a_hint(desk: TriedProject) -> None:
    async with opened(desk.root, RunOptions(runs=1), models=["clever"]) as (project, trial):
        await trial.run(project).execute()
        errors = {one.error.message for one in trial.store.current_records() if one.error is not None}
    assert errors == {"desk is not an ADK agent, so its model cannot be set from outside"}


async def test_cost_is_counted_per_variant_and_its_limit_ends_the_run(adk: TriedProject) -> None:
    adk.write("desk/agent.py", PRICED.replace("INSTRUCTION", "name the day"))
    prices = Prices({"scripted": Price(1000.0, 0.0)})  # Each call costs 1.
    async with opened(adk.root, RunOptions(runs=1, concurrency=1)) as (project, trial):
        await trial.run(project, prices=prices).execute()
        found = report(trial.layout, trial.store.current_records(), trial.costs)
    assert [one.cost for one in found.variants] == [pytest.approx(4.0), pytest.approx(4.0)]
    async with opened(adk.root, RunOptions(runs=1, concurrency=1)) as (project, trial):
        await trial.run(project, prices=prices, max_cost=3.0).execute()
        found = report(trial.layout, trial.store.current_records(), trial.costs)
        assert trial.stopped == "cost"
    judged = [one.judged for one in found.variants]
    assert 3 <= sum(judged) < 8
    assert abs(judged[0] - judged[1]) <= 1, "the variants have run in turn"
    assert found.variants[1].comparison is not None
    assert found.variants[1].comparison.cases == min(judged)


async def test_cost_is_estimated_from_the_last_run_for_all_variants_and_repeats(adk: TriedProject) -> None:
    prices = Prices({"scripted": Price(1000.0, 0.0)})
    async with Project.open(adk.root) as project:
        await project.run(await project.plan()).execute()
    adk.write("desk/agent.py", PRICED.replace("INSTRUCTION", "name the day"))
    async with opened(adk.root, RunOptions(runs=3)) as (project, trial):
        found = trial.estimate(project.state_dir(adk.root), prices)
    assert found.calls == 24
    assert found.amount == pytest.approx(24.0)
    assert found.cost_words == "about 24 calls, about $24.00"


async def test_unknown_cost_ends_a_run_with_a_cost_limit(adk: TriedProject) -> None:
    async with opened(adk.root, RunOptions(runs=1, concurrency=1), models=["clever"]) as (project, trial):
        await trial.run(project, prices=Prices({"another": Price(1.0, 1.0)}), max_cost=100.0).execute()
        assert trial.stopped == "unknown cost"


async def test_project_that_is_installed_in_editable_form_is_imported_from_the_copy(
    desk: TriedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("src/words/__init__.py", "CLEAR = False\n")
    agent = desk.root / "desk/agent.py"
    agent.write_text(agent.read_text().replace('"name the day" in prompt', "__import__('words').CLEAR"))
    desk.commit()
    desk.write("src/words/__init__.py", "CLEAR = True\n")
    # An editable install has the same effect: the project's own folder is on the path before the agent's.
    monkeypatch.setenv("PYTHONPATH", f"{desk.root / 'src'}:{python_path()}")
    found = await result_of(desk.root)
    assert [one.pass_rate for one in found.variants] == [0.5, 1.0]


async def test_agent_that_writes_into_its_own_folder_writes_into_its_copy(desk: TriedProject) -> None:
    agent = desk.root / "desk/agent.py"
    writes = '    (HERE / "log.txt").open("a").write("x")\n    prompt ='
    agent.write_text(agent.read_text().replace("    prompt =", writes, 1))
    desk.prompt("name the day")
    before = git(desk.root, "status", "--porcelain")
    found = await result_of(desk.root, RunOptions(runs=1))
    assert [one.judged for one in found.variants] == [4, 4]
    assert git(desk.root, "status", "--porcelain") == before


FLAKY_MODEL = '''
import hashlib, itertools, os
from google.adk.models import BaseLlm
from .scripted_model import ScriptedModel

class FlakyModel(ScriptedModel):
    """Looks things up in two of three conversations, and always if told to."""

    async def generate_content_async(self, llm_request, stream=False):
        if not hasattr(FlakyModel, "turn"):
            message = "".join(part.text or "" for part in llm_request.contents[0].parts)
            FlakyModel.turn = count(message) % 3
        told = str(llm_request.config.system_instruction)
        right = FlakyModel.turn != 1 or "Always look" in told
        if not right:
            llm_request.contents.clear()
        async for response in super().generate_content_async(llm_request, stream):
            yield response

def count(message):
    variant = hashlib.md5(__file__.encode()).hexdigest()
    for number in itertools.count():
        try:
            os.close(os.open(f"{os.environ['COUNTS']}/{variant} {message} {number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number
'''


@pytest.fixture
def concierge(desk: TriedProject) -> TriedProject:
    """The sample agent with a flaky model, and six cases that its script knows."""
    shutil.rmtree(desk.root / "desk")
    shutil.copytree(_SAMPLES / "hotel_concierge", desk.root / "hotel_concierge")
    folder = desk.root / "hotel_concierge"
    for evalset in folder.glob("*.evalset.json"):
        evalset.unlink()
    (folder / "flaky_model.py").write_text(FLAKY_MODEL)
    agent = folder / "agent.py"
    text = agent.read_text().replace("from .scripted_model import ScriptedModel", "from .flaky_model import FlakyModel")
    agent.write_text(text.replace("ScriptedModel(", "FlakyModel("))
    answer, message = "Your table for two is reserved at 19:00.", "A table for two at seven."
    (folder / "script.json").write_text(_script(answer, [f"{message} {number}" for number in range(6)]))
    cases = [case(f"table_{number}", f"{message} {number}", answer) for number in range(6)]
    desk.evalset(*cases, path="hotel_concierge/tables.evalset.json")
    desk.write("hotel_concierge/test_config.json", {"criteria": {"response_match_score": 0.8}})
    desk.commit()
    return desk


def _script(answer: str, messages: Sequence[str]) -> str:
    call = {"calls": [{"name": "reserve_table", "args": {"time": "19:00", "people": 2}}]}
    return json.dumps({message: [call, {"text": answer}] for message in messages})


async def test_better_prompt_of_a_sample_agent_with_a_flaky_model_is_found(concierge: TriedProject) -> None:
    agent = concierge.root / "hotel_concierge/agent.py"
    agent.write_text(agent.read_text().replace("Look before", "Always look before"))
    found = await result_of(concierge.root, RunOptions(runs=3, concurrency=1))
    comparison = found.variants[1].comparison
    assert comparison is not None
    assert comparison.result == "better"
    assert found.variants[0].pass_rate == pytest.approx(2 / 3)
