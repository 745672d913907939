"""The place of the next run, how busy machines are in the bar, and the page that lists them."""

from functools import partial
from pathlib import Path

from tests.ui.conftest import MakeWorkspace, OpenScreen
from workbench.files.project_settings import known_places
from workbench.files.run_options import PlaceChoice
from workbench.run.dask.files import MachineState, Sending, is_confirmed
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.running.dialogs import MachinesScreen
from workbench.ui.session.next_run import PlaceOptions

CLUSTER = PlaceChoice("dask://one:8786", env=("MODE",), name="cluster")
SETTING = '[tool.agent-workbench.places.cluster]\nat = "dask://one:8786"\nenv = ["MODE"]\n'


async def test_place_is_chosen_and_its_machines_are_shown(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace()
    (workspace.root / "pyproject.toml").write_text(SETTING)
    screen = open_screen(workspace)
    async with screen.open((120, 40)) as pilot:
        await screen.until(pilot, lambda: screen.session.places.named == (CLUSTER,))
        await pilot.press("o")
        await screen.until(pilot, lambda: isinstance(pilot.app.screen, CriteriaScreen))
        assert "@ place local" in screen.text
        await pilot.press("@")
        await screen.until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await screen.until(pilot, lambda: "cluster" in screen.text)
        await pilot.press(*"dask://a:1", "enter")
        await screen.until(pilot, lambda: "@ place dask://a:1" in screen.text)
        await pilot.press("o")
        await screen.until(pilot, lambda: "on dask://a:1" in screen.text)
        assert screen.session.places.run_options() == {"place": PlaceChoice("dask://a:1")}

        await pilot.press("r")
        await screen.until(pilot, lambda: len(screen.runs) == 1 and screen.session.store.activity.running)
        run = screen.runs[0]
        run.states = [MachineState("a", "ready", 8, running=3), MachineState("b", "preparing", 8, running=4)]
        controllers = screen.app.main.controllers
        controllers.news._tick()
        await screen.until(pilot, lambda: "2 machines 7/16" in screen.text)
        controllers.run.machines()
        await screen.until(pilot, lambda: isinstance(pilot.app.screen, MachinesScreen))
        await screen.until(pilot, lambda: "3/8" in screen.text)
        page = pilot.app.screen
        assert isinstance(page, MachinesScreen)
        run.states = [MachineState("a", "ready", 16, 7), MachineState("b", "lost", 8, lost=4, why="the link was cut")]
        page.look_again()
        await screen.until(pilot, lambda: "the link was cut" in screen.text)
        await pilot.press("escape")
        run.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)


async def test_everything_that_leaves_the_machine_is_listed_before_the_user_confirms(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace()
    left = {f"desk/{number}.pem": "its name looks like a key" for number in range(8)}
    names = (*(f"A_LONG_NAME_OF_A_VARIABLE_{number}" for number in range(20)), "THE_LAST")
    sending = Sending("cluster", "dask://one:8786", workspace.root, {"desk/agent.py": 1}, left, names)
    screen = open_screen(workspace)
    async with screen.open((80, 24)) as pilot:
        news = screen.app.main.controllers.news
        for answer in (["q"], ["down", "enter"]):
            news.view.work(partial(news._confirm, sending), "confirm place", exclusive=False)
            await screen.until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
            await screen.until(pilot, lambda: "not encrypted" in screen.text and "variables" in screen.text)
            await pilot.press(*["j"] * 30)
            await screen.until(pilot, lambda: "THE_LAST" in screen.text)
            assert not is_confirmed(sending)
            await pilot.press(*["k"] * 30, *answer)
            await screen.until(pilot, lambda: not isinstance(pilot.app.screen, PickScreen))
        await screen.until(pilot, lambda: is_confirmed(sending))


def test_place_search_offers_local_named_and_typed_places() -> None:
    search = PlaceOptions(named=(CLUSTER,)).search()
    assert [item.label for item in search("")] == ["local", "cluster"]
    assert search("clus")[0].value == PlaceChoice("cluster")
    assert search("dask://c:1")[0].value == PlaceChoice("dask://c:1")
    for text in ("dask://a:1 --fast", "--fast", "a b"):
        (refused,) = (item for item in search(text) if item.label == text)
        assert refused.value is None
        assert refused.why_not == "type one place, such as dask://host:8786"


def test_label_names_the_place_of_the_project_unless_another_is_chosen() -> None:
    assert PlaceOptions().label == "local"
    assert PlaceOptions().for_bar == ""
    project = PlaceOptions(project=CLUSTER, named=(CLUSTER,))
    assert (project.label, project.for_bar) == ("cluster (pyproject.toml)", "on cluster")
    here = PlaceOptions(PlaceChoice(), CLUSTER, (CLUSTER,))
    assert (here.label, here.for_bar, here.run_options()) == ("local", "", {"place": PlaceChoice()})


def test_known_places_leave_out_unreadable_settings(tmp_path: Path) -> None:
    setting = tmp_path / "pyproject.toml"
    assert known_places(tmp_path) == (None, ())
    setting.write_text(
        f'[tool.agent-workbench]\nplace = "cluster"\n{SETTING}[tool.agent-workbench.places.odd]\nat = 3\n'
    )
    assert known_places(tmp_path) == (CLUSTER, (CLUSTER,))
    setting.write_text("[tool.agent-workbench\n")
    assert known_places(tmp_path) == (None, ())
