"""Freezing on the screen, with the real engine: what is written, replay, and fixes of a missing call."""

from pathlib import Path

from textual.pilot import Pilot

from tests import frozen
from tests.stored import stored_runs
from tests.ui.conftest import Screen
from tests.ui.running.test_engine_run import opened
from workbench.files.frozen_path import frozen_path
from workbench.run.recordings.frozen_file import read_frozen
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.proposals import SeveralScreen
from workbench.ui.freezing.screen import FreezeScreen


async def _ran(screen: Screen, pilot: Pilot[int], *keys: str) -> None:
    runs = len(stored_runs(screen.session.state_dir))
    await pilot.press(*keys)
    await screen.until(pilot, lambda: len(stored_runs(screen.session.state_dir)) > runs)
    await screen.until(pilot, lambda: not screen.session.store.activity.busy)


async def test_case_is_frozen_and_replayed_and_a_missing_call_can_be_added(tmp_path: Path) -> None:
    agent = frozen.write(tmp_path)
    calls, prompt = agent / "calls.log", agent / "prompt.txt"
    file = frozen_path(agent / "refunds.evalset.json", "返金の依頼")
    async with opened(tmp_path) as (app, session, screen, pilot):
        await _ran(screen, pilot, "r")
        made = len(calls.read_text().splitlines())

        # K shows what would be written. A dropped case is not written, and u undoes all files at once.
        await screen.until(pilot, lambda: app.main.in_right)  # The cursor went to the cause of the failure.
        await pilot.press("escape", "K")
        await screen.until(pilot, lambda: isinstance(app.screen, FreezeScreen))
        await screen.until(pilot, lambda: "5 files, 8 tool calls, 1 large value in its own file" in screen.text)
        await pilot.press("j", "space", "enter")
        await screen.until(pilot, lambda: "done: freeze 4 cases" in screen.text)
        assert len(list(file.parent.glob("*.frozen.json"))) == 4
        await pilot.press("u")
        await screen.until(pilot, lambda: not file.parent.exists())
        await pilot.press("U")
        await screen.until(pilot, file.exists)

        # o replays the next runs, and the bar says so.
        await screen.until(pilot, lambda: session.workspace is not None)
        await pilot.press("/", *"返金", "enter", "g", "o")
        await screen.until(pilot, lambda: isinstance(app.screen, CriteriaScreen))
        await pilot.press("K")
        await screen.until(pilot, lambda: "recordings tools" in screen.text)
        await pilot.press("o")
        await screen.until(pilot, lambda: "❅ frozen tools" in screen.text)
        await _ran(screen, pilot, "r")
        assert session.store.counts() == {"passed": 1}
        assert len(calls.read_text().splitlines()) == made

        # A changed argument is a miss. Its first way out keeps the new call.
        prompt.write_text("15")
        await _ran(screen, pilot, "r")
        assert session.store.counts() == {"error": 1}
        await pilot.press("n", "1")
        sides = ("− recorded  12.5  number", "+ called    15.0  number")
        await screen.until(pilot, lambda: all(words in screen.text for words in sides))
        await pilot.press("K")
        await screen.until(pilot, lambda: isinstance(app.screen, PickScreen))
        assert "ignore amount of refund" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: isinstance(app.screen, FreezeScreen))
        await screen.until(pilot, lambda: "3 tool calls" in screen.text)
        await pilot.press("enter")
        kept = [None, 15.0, 12.5]
        await screen.until(pilot, lambda: [call.args.get("amount") for call in read_frozen(file).calls] == kept)

        # The second one edits the list of ignored arguments.
        prompt.write_text("16")
        await _ran(screen, pilot, "r")
        await pilot.press("K")
        await screen.until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("down", "enter")
        await screen.until(pilot, lambda: read_frozen(file).ignore == {"refund": ("amount",)})


async def test_damaged_recording_offers_to_freeze_again(tmp_path: Path) -> None:
    agent = frozen.write(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.agent-workbench]\nfrozen = "tools"\n')
    file = frozen_path(agent / "refunds.evalset.json", "late_parcel")
    file.parent.mkdir()
    file.write_text("{")
    async with opened(tmp_path) as (app, _, screen, pilot):
        await screen.until(pilot, lambda: "❅ frozen tools" in screen.text)
        await pilot.press("/", *"late_p", "enter", "g")
        await _ran(screen, pilot, "r")
        await pilot.press("n", "1")
        await screen.until(pilot, lambda: "late_parcel.frozen.json" in screen.text)
        await pilot.press("K")
        await screen.until(pilot, lambda: isinstance(app.screen, PickScreen))
        assert "ignore" not in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: isinstance(app.screen, FreezeScreen))
        await screen.until(pilot, lambda: "is replaced" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: freeze late_parcel" in screen.text)
        assert len(read_frozen(file).calls) == 1
        (tmp_path / "pyproject.toml").write_text('[tool.agent-workbench]\nfrozen = "all"\n')
        await screen.until(pilot, lambda: "❅ frozen all" in screen.text)


async def test_drift_is_shown_after_a_thaw_and_accepted_one_by_one(tmp_path: Path) -> None:
    agent = frozen.write(tmp_path)
    file = frozen_path(agent / "refunds.evalset.json", "返金の依頼")
    async with opened(tmp_path) as (app, session, screen, pilot):
        await pilot.press("/", *"返金", "enter", "g")
        await _ran(screen, pilot, "r")
        await pilot.press("K")
        await screen.until(pilot, lambda: isinstance(app.screen, FreezeScreen))
        await pilot.press("enter")
        await screen.until(pilot, lambda: file.exists() and "done: freeze" in screen.text)

        frozen.change_world(agent, {"find_order": {"days": 9}, "refund": {"id": "R-2"}})
        runs = len(stored_runs(session.state_dir))
        app.main.do("thaw")
        await screen.until(pilot, lambda: len(stored_runs(session.state_dir)) > runs)
        await screen.until(pilot, lambda: not session.store.activity.busy)
        assert session.store.drifted == 1
        await pilot.press("g", "j", "j", "j", "1")
        drift = ("answer.days", "+ now       9", "A accepts changes")
        await screen.until(pilot, lambda: all(words in screen.text for words in drift))
        await pilot.press("A")
        await screen.until(pilot, lambda: isinstance(app.screen, SeveralScreen))
        await pilot.press("j", "j", "space")
        await screen.until(pilot, lambda: "1 of 2" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: accept drift of 1 case" in screen.text)
        answers = [call.answer for call in read_frozen(file).calls]
        assert [answer.get("days", answer.get("id")) for answer in answers] == [9, "R-1"]
        await pilot.press("u")
        await screen.until(pilot, lambda: read_frozen(file).calls[0].answer["days"] == 3)
