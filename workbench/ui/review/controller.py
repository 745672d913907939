"""The action "review": failing cases one by one, with the user's verdicts on them."""

from collections.abc import Sequence
from itertools import starmap
from typing import TYPE_CHECKING

from workbench.ui.accepting.controller import Accept
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.running.news import News
from workbench.ui.running.run import Run
from workbench.ui.screen.controller import Controller
from workbench.ui.terminal.host import Host
from workbench.ui.tree.outline import Pair
from workbench.ui.triage.controller import Triage

if TYPE_CHECKING:
    from workbench.ui.review.model import Section
    from workbench.ui.review.screen import CaseReviewScreen
    from workbench.ui.screen.view import View


class Review(Controller):
    """The controller of a review. It opens the screen, and tells it what has changed."""

    def __init__(
        self, view: "View", news: News, files: Files, edit: Edit, accept: Accept, run: Run, triage: Triage, host: Host
    ) -> None:
        super().__init__(view)
        self._others = files, edit, accept, run, triage, host
        self._screen: CaseReviewScreen | None = None
        """The screen of the current or last review."""
        files.folder.when_loaded.append(lambda: self._check("changed on disk"))
        triage.when_read.append(self._triage_read)
        news.when_taken.append(self.after_news)

    def review(self) -> None:
        """Review the failures among the marked cases, else of the overview's item, else at and below the cursor.

        On a case, review all shown failures. If no marked case failed, review the marked cases that passed.
        """
        if self.workspace() is None:
            return
        from workbench.ui.review.model import Section

        pairs, row = self.view.targets("review"), self.view.rows.cursor
        current = (row.evalset, row.case) if row is not None and not len(self.view.rows.marks) else None
        if not pairs:
            self.view.say(self.session.why_nothing_found("nothing failed here: mark passed cases to review them"))
        elif self.session.verdicts.state(*pairs[0]) == "passed":
            names = tuple(starmap(self.session.opened.case_name, pairs))
            self._open([Section("passed cases", names)], current, passes=True)
        else:
            self._open(self._causes(pairs), current)

    def _causes(self, pairs: Sequence[Pair]) -> "list[Section]":
        """Return the cases by cause, the biggest cause first. Causes with only errors come last."""
        from workbench.store.reasons import ONE_OF_A_KIND
        from workbench.ui.review.model import Section
        from workbench.ui.screen.overview_contents import Figures
        from workbench.ui.tree.scope import scope_of

        state, name_of = self.session.verdicts.state, self.session.opened.case_name
        groups = Figures(self.session.verdicts).groups(scope_of(pairs))
        groups.sort(key=lambda group: all(state(*pair) == "error" for pair in group.cases))
        return [
            Section(
                group.cause.text,
                tuple(starmap(name_of, group.cases)),
                group.cause.by_function,
                alike=group.cause is not ONE_OF_A_KIND,
            )
            for group in groups
        ]

    def _open(self, sections: "list[Section]", current: Pair | None, *, passes: bool = False) -> None:
        from workbench.ui.review.cases import ReviewedCases
        from workbench.ui.review.model import Review as Model
        from workbench.ui.review.screen import CaseReviewScreen

        first = self.session.opened.case_name(*current) if current is not None and current[1] >= 0 else None
        cases = ReviewedCases(self.view, passes=passes)
        model = Model(sections, cases.earlier, cases.judgeable, first, passes=passes)
        self._screen = CaseReviewScreen(model, cases, *self._others)
        self.view.say_on_page = self._screen.say
        self.view.push(self._screen)

    def after_news(self, ended: bool) -> None:
        """Show the case again if a run has changed its status or its scores."""
        self._check("")

    def _check(self, why: str) -> None:
        if self._screen is not None and self._screen.open:
            self._screen.check(why)

    def _triage_read(self) -> None:
        """Show verdicts that another program has written."""
        if self._screen is not None and self._screen.open:
            self._screen.triage_read()
