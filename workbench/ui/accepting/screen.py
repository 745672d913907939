"""The dialog for accepting parts of a transcript as expected.

It shows the differences, the resulting change of the file, and the new scores of the same transcript.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.text import Text
from textual.content import Content

from workbench.criteria.call_rows import CallRules
from workbench.editing.accept import CRITERION, Comparison, Offer, accepted_by, offers, rules_of, with_rules
from workbench.editing.accept_turn import Hunk
from workbench.editing.criteria_change import ConfigDraft, ConfigRejectedError, edit_of
from workbench.editing.evalset_file import RejectedError
from workbench.editing.saving import ChangedOnDiskError, Saver
from workbench.files.criteria import Criterion, parse_config
from workbench.files.invocation import content_text
from workbench.files.json_text.json_edit import EditError
from workbench.results.cells import cell_len, fit
from workbench.results.faces import short_name
from workbench.results.lines import Line, flow, pieces
from workbench.text.counting import counted, cut_score
from workbench.text.safe_text import one_line
from workbench.ui.accepting.outcome import Outcome, Results, Transcript, outcomes
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.conflicts import save_error_message
from workbench.ui.editing.drafts import Draft
from workbench.ui.editing.proposals import (
    BOX_OF_RULE,
    ChangeList,
    ChangesScreen,
    DiffLine,
    checkbox,
    file_diff,
    show_hunks,
    shown_change,
)
from workbench.ui.widgets.basics import Titled, start_work
from workbench.ui.widgets.rows import Piece


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the list: the case (`turn` -1), a turn, the end state (its `turn` is the number of turns), or a hunk."""

    turn: int
    hunk: Hunk | None = None


class HunkList(ChangeList[Row]):
    """The tree of case, turns and hunks. `failed` returns the names of the failed criteria that a hunk can affect.

    The values of chosen hunks become expected. `offers` are the rules chosen by the user, by hunk. `rules` are all
    rules for arguments, including the chosen ones.
    """

    def __init__(
        self, comparison: Comparison, questions: Sequence[str], failed: Callable[[Hunk], str], rules: CallRules
    ) -> None:
        lines = [Row(-1)]
        for turn in dict.fromkeys(hunk.turn for hunk in comparison.hunks):
            lines += [Row(turn), *(Row(turn, hunk) for hunk in comparison.hunks if hunk.turn == turn)]
        super().__init__(lines)
        self._hunks, self._questions, self._failed = comparison.hunks, questions, failed
        self.offers: dict[Hunk, Offer] = {}
        self.rules = rules

    def below(self, line: Row) -> list[Hunk]:
        """Return the hunks of a line."""
        if line.hunk is not None:
            return [line.hunk]
        return [hunk for hunk in self._hunks if line.turn in (-1, hunk.turn)]

    def toggle(self, line: Row) -> None:
        """Choose a line's hunks that have no rule, or deselect them if all are chosen. A hunk with a rule loses it."""
        hunks = {hunk for hunk in self.below(line) if hunk not in self.offers}
        if line.hunk in self.offers:
            del self.offers[line.hunk]
        self.chosen = self.chosen - hunks if hunks <= self.chosen else self.chosen | hunks
        self.refresh()

    def box(self, line: Row) -> Piece:
        """Return the checkbox of a line. Hunks with a rule count as chosen."""
        below = self.below(line)
        return BOX_OF_RULE if line.hunk in self.offers else checkbox(sum(map(self._is_taken, below)), len(below))

    def _is_taken(self, hunk: Hunk) -> bool:
        return hunk in self.chosen or hunk in self.offers

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return checkbox, name, change and failed criteria of a line."""
        line = self.rows[position]
        box = self.box(line)
        count = len(self.below(line))
        if line.turn < 0:
            return [box, ("the whole case", "strong")], [(f"{len(self.chosen) + len(self.offers)} of {count}", "muted")]
        if line.hunk is None:
            if line.turn >= len(self._questions):
                return [("  ", ""), box, ("end state", "strong")], []
            question = one_line(self._questions[line.turn], limit=120)
            return [("  ", ""), box, (f"turn {line.turn + 1} ", "strong"), (question, "muted")], []
        accepted = accepted_by(line.hunk, self.rules)
        failed = "" if accepted else self._failed(line.hunk)
        right: list[Piece] = [(f"✗ {failed}", "failed")] if failed and width > 44 else []
        if accepted and width > 44:
            right = [(f"~ {fit(accepted, min(cell_len(accepted), width // 2))}", "muted")]
        return [("    ", ""), box, (one_line(line.hunk.what, limit=120), "")], right


_UNSAVABLE = (RejectedError, ConfigRejectedError, EditError, OSError)


@dataclass(frozen=True)
class Acceptance:
    """The case, its transcript and their differences.

    `failed` returns the names of the failed criteria that a hunk can affect.
    """

    draft: Draft
    transcript: Transcript
    comparison: Comparison
    criteria: Sequence[Criterion]
    failed: Callable[[Hunk], str]
    verdicts: Results = ()
    """The results of each turn, if they are known."""
    config: ConfigDraft | None = None
    """The config that new rules go into, or None if there is none."""
    about_config: str = ""
    """Safe text: the config's path and how many evalsets it governs, or why there is no config."""


class AcceptScreen(ChangesScreen[HunkList, bool]):
    """The dialog for accepting differences. Its result is whether any were saved. At first, nothing is chosen."""

    def __init__(self, about: Acceptance, saver: Saver, keys: Mapping[str, tuple[str, ...]]) -> None:
        questions = [content_text(turn and turn.get("user_content")) for turn in about.transcript.turns]
        name, others = one_line(about.draft.name, limit=200), map(one_line, about.draft.evalset.ids)
        frame = Titled("accept actual as expected › ", name, classes="dialog accept", others=others)
        frame.border_subtitle = Content("enter saves the chosen differences · esc closes")
        rules = any(hunk.kind == "argument" for hunk in about.comparison.hunks)
        changes = HunkList(about.comparison, questions, about.failed, rules_of(about.criteria))
        super().__init__(changes, keys, frame, () if rules else ["criteria"])
        self._about, self._saver = about, saver
        self._busy = False

    def on_mount(self) -> None:
        """Show the differences, and which turns cannot be compared."""
        self.list.when_moved = self._show_hunks
        super().on_mount()
        self._show_hunks()
        self._show_change()
        notes = self._about.comparison.notes
        if notes:
            self.say(one_line("not compared: " + "; ".join(notes)), warning=True)

    def action_pick_rule(self) -> None:
        """Let the user pick a rule that accepts the argument under the cursor."""
        hunk, about = self.list.row.hunk, self._about
        if hunk is None or hunk.kind != "argument":
            self.say("rules are for single arguments: put the cursor on one")
        elif about.config is None:
            self.say(about.about_config, warning=True)
        else:
            found = offers(hunk, rules_of(about.criteria))
            width = max(len(offer.path) for offer in found)
            note = f"Adds a rule to {about.about_config}."
            items = [Item(f"{one_line(offer.path):{width}}  {offer.text}", offer, help=note) for offer in found]
            title = f"accept in {one_line(hunk.tool, limit=60)}"
            self.app.push_screen(PickScreen(title, searching(items)), partial(self._by_rule, hunk))

    def _by_rule(self, hunk: Hunk, offer: Offer | None) -> None:
        if offer is not None:
            # The rule accepts the hunk, instead of its value.
            self.list.chosen = self.list.chosen - {hunk}
            self.list.offers[hunk] = offer
            self._show_change()

    def action_back(self) -> None:
        """Close the dialog without saving."""
        if not self._busy:
            self.dismiss(False)

    def action_enter(self) -> None:
        """Save the chosen differences."""
        if not self.list.chosen and not self.list.offers:
            self.say("nothing chosen: press space for the line, or a for everything", warning=True)
        elif not self._busy:
            self._busy = True
            start_work(self, self._write, "save")

    async def _write(self) -> None:
        draft, chosen, rules = self._about.draft, self.list.chosen, len(self.list.offers)
        count = len(chosen) + rules
        what = "all differences" if count == len(self._about.comparison.hunks) else counted(count, "difference")
        label = f"{draft.name}: accept {what}" + (f", {rules} by a rule" if rules else "")
        try:
            contents = await asyncio.to_thread(self._contents, chosen, tuple(self.list.offers.values()))
            await asyncio.to_thread(self._saver.save, label, contents)
        except ChangedOnDiskError as error:
            self.say(f"{save_error_message(error)}: press esc, then A to compare again", warning=True)
        except _UNSAVABLE as error:
            self.say(save_error_message(error), warning=True)
        else:
            self.dismiss(True)
        finally:
            self._busy = False

    def _contents(self, chosen: frozenset[Hunk], rules: Sequence[Offer]) -> dict[Path, tuple[bytes | None, bytes]]:
        """Return the old content (None for a new file) and the new content of each changed file. Runs in a thread."""
        draft, config = self._about.draft, self._about.config
        found: dict[Path, tuple[bytes | None, bytes]] = {}
        if chosen:
            after = draft.after(self._about.comparison.accepted(chosen))
            found[draft.file] = (draft.evalset.content, after.content)
        if rules and config is not None:
            found[config.file] = (config.before, edit_of(config, with_rules(config, rules))[1])
        return found

    def _show_hunks(self) -> None:
        show_hunks(self._detail, self.list.below(self.list.row))

    def _show_change(self) -> None:
        self.say("")
        start_work(self, partial(self._compare, self.list.chosen, dict(self.list.offers)), "preview")

    async def _compare(self, chosen: frozenset[Hunk], rules: Mapping[Hunk, Offer]) -> None:
        criteria, lines, scores = await asyncio.to_thread(self._preview_of, chosen, tuple(rules.values()))
        if chosen != self.list.chosen or rules != self.list.offers:
            return
        self.list.rules = rules_of(criteria)
        self.list.refresh()
        if isinstance(lines, str):
            self.say(lines, warning=True)
            lines = []
        self._preview.update(shown_change(lines))
        self._scroll.set_class(not lines, "-nothing")
        self._outcome.update(_scores(scores, self._outcome.size.width))

    def _preview_of(
        self, chosen: frozenset[Hunk], rules: Sequence[Offer]
    ) -> tuple[Sequence[Criterion], list[DiffLine] | str, list[Outcome]]:
        """Return the new criteria, the diff of the files (or an error message), and the scores. Runs in a thread."""
        about, config = self._about, self._about.config
        value = about.comparison.accepted(chosen)
        criteria, lines, trouble = about.criteria, list[DiffLine](), ""
        try:
            for file, (before, after) in self._contents(chosen, rules).items():
                if config is not None and file == config.file:
                    criteria = parse_config(file, after).criteria
                    lines.append(DiffLine("@", about.about_config))
                lines += file_diff(before or b"", after)
        except _UNSAVABLE as error:
            trouble = save_error_message(error, "no preview")
        changed = [one for one in criteria if one.name == CRITERION]
        before, turns, state = about.draft.value, about.transcript.turns, about.transcript.state
        scores = outcomes(about.criteria, before, value, turns, about.verdicts, changed, state)
        return criteria, trouble or lines, scores


def _scores(found: Sequence[Outcome], width: int) -> Content:
    """Return `tool_trajectory 0.50 → 1.00 ✓ passes` for each criterion, wrapped to `width` cells."""
    parts: list[Line] = []
    for one in found:
        before, after = _score(one.before), _score(one.after)
        scores = f"{before} → {after} " if before != after else f"{after} "
        word = Text.styled("✓ passes", "status-passed") if one.passes else Text.styled("✗ fails", "status-failed")
        parts.append(Text.assemble((f"{short_name(one.name)} ", "label"), scores, word))
    lines = flow(parts, max(width, 10), "   ")
    texts = [[(text, f"${style}" if style else "") for text, style in pieces(line)] for line in lines]
    return Content("\n").join(Content.assemble(*line) for line in texts)


def _score(score: float | None) -> str:
    return "–" if score is None else cut_score(score, 2, 2)
