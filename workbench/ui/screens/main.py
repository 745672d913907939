"""The main screen: the shell with all its keys."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType

from workbench.actions.main_screen import MAIN_SCREEN
from workbench.ui.controllers.checks import Checks
from workbench.ui.controllers.pictures import Pictures
from workbench.ui.controllers.view import Controller
from workbench.ui.host import Host
from workbench.ui.keys import bindings_of
from workbench.ui.pace import Pace
from workbench.ui.run_thread import Build, RunThread
from workbench.ui.screens.accept_actions import AcceptActions
from workbench.ui.screens.criteria_actions import CriteriaActions
from workbench.ui.screens.general_actions import GeneralActions
from workbench.ui.screens.history_actions import HistoryActions
from workbench.ui.screens.resume_actions import ResumeActions
from workbench.ui.screens.run_actions import Targets
from workbench.ui.screens.tree_actions import TreeActions
from workbench.ui.screens.triage_actions import TriageActions
from workbench.ui.screens.watch_actions import WatchActions
from workbench.ui.session import Session
from workbench.ui.times import Times

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import Workspace
    from workbench.engine.watch.board import Job
    from workbench.project.project import TrialImport
    from workbench.project.watching import Watching
    from workbench.ui.chat.link import MakeChat
    from workbench.ui.engine_run import Engine


class MainScreen(
    TreeActions,
    HistoryActions,
    CriteriaActions,
    AcceptActions,
    TriageActions,
    WatchActions,
    ResumeActions,
    GeneralActions,
):
    """`build` makes a run of cases, `rescoring` one that only scores them again (asking judges anew if told so), `runs`
    the thread it is executed in (given what wakes the screen), `engine` what the watch and conversations need of it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("main")]

    def __init__(
        self,
        session: Session,
        keys: Mapping[str, tuple[str, ...]],
        build: Callable[[Targets, Times], Build],
        host: Host,
        runs: Callable[[Callable[[], None]], RunThread] = RunThread,
        rescoring: Callable[[Targets, bool], Build] | None = None,
        engine: "Engine | None" = None,
    ) -> None:
        super().__init__(session, keys)
        self._build = build
        self._rescoring = rescoring
        self._engine = engine
        self.host = host
        self.pace = Pace()
        self.runs = runs(self._wake)
        self.checks = Checks(self, self._try_imports)
        self.pictures = Pictures(self)
        self._dispatch()

    def _dispatch(self) -> None:
        """Let the rows of the action table call their controllers."""
        for action in MAIN_SCREEN:
            if action.by:
                controller: Controller = getattr(self, action.by)
                setattr(self, f"action_{action.id}", getattr(controller, action.id))

    def load(self, workspace: "Workspace") -> None:
        super().load(workspace)
        self.checks.loaded()

    def build(self, targets: Targets, times: Times) -> Build:
        return self._build(targets, times)

    def build_rescoring(self, targets: Targets, *, fresh: bool) -> Build:
        assert self._rescoring is not None
        return self._rescoring(targets, fresh)

    def build_comparison(self, targets: Targets) -> Build | None:
        session = self.session
        if self._engine is None or session.workspace is None:
            return None
        records = [record for pair in targets for record in session.verdicts.records(*pair)]
        return self._engine.rescore(
            session.workspace, targets, records, session.draft, session.state_dir, fresh=False, references_of_now=True
        )

    def make_watching(self, marked: set[tuple[int, int]]) -> "Watching":
        assert self._engine is not None
        return self._engine.watch(self.session, marked)

    def look_again(self) -> None:
        self.host.look_again()

    def build_resumption(self) -> Build:
        assert self._engine is not None
        assert self.session.workspace is not None
        return self._engine.resume(self.session.workspace, self.session.state_dir)

    def resumable(self) -> str:
        session = self.session
        if self._engine is None or session.workspace is None or not (session.state_dir / "runs").is_dir():
            return ""
        return self._engine.resumable(session.workspace, session.state_dir)

    def build_watched(self, watching: "Watching", job: "Job") -> Build:
        assert self._engine is not None
        return self._engine.watched(watching, job)

    def make_chat(self, agent: "AgentFolder", session_input: dict[str, Any]) -> "MakeChat":
        assert self._engine is not None
        assert self.session.workspace is not None
        return self._engine.chat(agent, self.session.workspace.root, session_input)

    def warm_up(self) -> None:
        if self._engine is not None and self.session.workspace is not None:
            self.runs.also(self._engine.warm(self.session.workspace))

    def _try_imports(self, workspace: "Workspace", told: "Callable[[TrialImport], None]") -> None:
        assert self._engine is not None
        self.runs.also(self._engine.import_agents(workspace, told))

    def renew(self) -> None:
        if self._engine is not None:
            self._engine.renew()

    def _wake(self) -> None:
        """From the run's thread: posting a message is what may be done from there."""
        self.post_message(self.NewsCame())
