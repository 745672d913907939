"""The state of a review, without its screen: cases, position, verdicts, undo, and keys pressed too early."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal

from workbench.events.events import CaseName


@dataclass(frozen=True, slots=True)
class Section:
    """The cases of one cause, or the passed cases of a review.

    `text` is the cause, as safe text. `by_function`: a function was the judge. `alike` is False if each case has its
    own cause. One verdict then cannot hold for all cases.
    """

    text: str
    names: tuple[CaseName, ...]
    by_function: bool = False
    alike: bool = True


@dataclass(frozen=True, slots=True)
class Given:
    """A verdict of the user. `by_cause`: it was given for a whole cause, and the user has not seen this case."""

    choice: str
    by_cause: bool = False


@dataclass(frozen=True)
class Step:
    """The verdicts given with one key, and what is needed to undo them.

    `at` is the case that was shown, and `names` are the cases that get the verdict. `unseen` are those of them that the
    user has not seen. `before` has the earlier verdicts. `edit` is the edit of the triage files, or None before it is
    saved.
    """

    choice: str
    at: CaseName
    names: tuple[CaseName, ...]
    unseen: frozenset[CaseName] = frozenset()
    before: dict[CaseName, Given | None] = field(default_factory=dict)
    edit: Any = None


@dataclass(frozen=True, slots=True)
class Question:
    """A request to confirm a verdict on a whole cause by pressing the letter of `choice` again.

    `cases` is the number of cases, and `seen` of them were on the screen. `stamps` detect changes of the cases.
    """

    choice: str
    cases: int
    seen: int
    stamps: dict[CaseName, object] = field(default_factory=dict)


Judgeable = Literal["verdict", "passed", "error", "nothing"]
"""The action that a case allows the user.

`verdict`: give a verdict. `passed`: nothing, because the case has passed since the review began. `error`: skip it,
because it has no verdict to judge. `nothing`: nothing, because the case is running, has no result, or no longer exists.
"""


class Review:
    """A review of the cases in `sections`, in this order.

    `earlier` returns the user's verdict from an earlier review, if it still applies. `judgeable` returns what the user
    can do with a case. The review starts at the case `first`, or else at the first case without a verdict. If there is
    none, all cases are shown again. `passes`: the reviewed cases had passed.
    """

    def __init__(
        self,
        sections: Sequence[Section],
        earlier: Callable[[CaseName], Given | None],
        judgeable: Callable[[CaseName], Judgeable],
        first: CaseName | None = None,
        *,
        passes: bool = False,
    ) -> None:
        self.passes = passes
        self.sections = tuple(section for section in sections if section.names)
        self.names = [name for section in self.sections for name in section.names]
        self._numbers = [number for number, section in enumerate(self.sections) for _ in section.names]
        self._earlier, self._judgeable = earlier, judgeable
        self._given: dict[CaseName, Given | None] = {}
        self._left: dict[int, dict[CaseName, None]] = {}
        """Cached results of `left`, by index of section."""
        self._again = False
        """Whether cases are shown even if they have a verdict."""
        self.steps: list[Step] = []
        self.seen: set[CaseName] = set()
        self.whole = False
        """Whether the next verdict is for the whole cause."""
        self.question: Question | None = None
        self.interrupted = False
        """Whether the case changed while a verdict on its cause was pending. If so, the next letter saves nothing."""
        self._painted_at = math.inf
        self.version = 0
        """The number of the state that will be painted next."""
        self.position = self.names.index(first) if first in self.names else self._next_left(0)
        if self.done:
            self.go_through_again()
        self.changed()

    # Where the review is

    @property
    def done(self) -> bool:
        """Whether the review is after the last case, on its last page."""
        return self.position >= len(self.names)

    @property
    def name(self) -> CaseName:
        """The current case.

        Raises:
            IndexError: The review is after the last case.
        """
        return self.names[self.position]

    @property
    def number(self) -> int:
        """The number of the current section, counted from 1.

        Raises:
            IndexError: The review is after the last case.
        """
        return self._numbers[self.position] + 1

    @property
    def section(self) -> Section:
        """The current section.

        Raises:
            IndexError: The review is after the last case.
        """
        return self.sections[self._numbers[self.position]]

    @property
    def neighbours(self) -> list[CaseName]:
        """The next and the previous case, if they exist."""
        places = (self.position + 1, self.position - 1)
        return [self.names[place] for place in places if 0 <= place < len(self.names)]

    def given(self, name: CaseName) -> Given | None:
        """Return the user's verdict on a case, or None if there is none."""
        if name not in self._given:
            self._given[name] = self._earlier(name)
        return self._given[name]

    def left(self) -> Collection[CaseName]:
        """Return the cases of the current section that can get a verdict of the user and have none yet."""
        number = self._numbers[self.position]
        if number not in self._left:
            found = (name for name in self.section.names if self._judgeable(name) == "verdict")
            self._left[number] = dict.fromkeys(name for name in found if self.given(name) is None)
        return self._left[number].keys()

    def rest(self) -> int:
        """Return the number of cases from the current one to the last one of its section."""
        return bisect_right(self._numbers, self._numbers[self.position]) - self.position

    def errors(self) -> int:
        """Return the number of consecutive errors, beginning with the current case."""
        ahead = (self._judgeable(self.names[place]) == "error" for place in range(self.position, len(self.names)))
        return sum(1 for _ in takewhile(bool, ahead))

    def step(self, step: int) -> bool:
        """Go `step` cases forward, or back if it is negative. Return False if the position did not change."""
        position = min(self.position + step, len(self.names))
        if position < 0 or position == self.position:
            return False
        self.position = position
        self.changed()
        return True

    def go_through_again(self, names: Iterable[CaseName] = ()) -> None:
        """Start again at the first case. With `names`, review only these cases."""
        if wanted := set(names):
            kept = [(number, name) for number, name in zip(self._numbers, self.names, strict=True) if name in wanted]
            self.names, self._numbers = [name for _, name in kept], [number for number, _ in kept]
        self._again = True
        self.position = 0
        self.changed()

    # What is on the screen

    def changed(self) -> int:
        """Record that the screen will be painted again. Return the number to pass to `painted`."""
        self._painted_at = math.inf
        self.version += 1
        return self.version

    def painted(self, version: int, at: float) -> None:
        """Record when a state was first painted, and that the user has seen its case. Ignore older states."""
        if version == self.version:
            self._painted_at = min(self._painted_at, at)
            if not self.done:
                self.seen.add(self.name)

    def is_early(self, at: float) -> bool:
        """Return whether a key was pressed before the current state was visible."""
        return at < self._painted_at

    # Verdicts

    def begin_whole(self) -> bool:
        """Toggle whether the next verdict or skip is for all cases left in this cause.

        Return False if no case is left, if each case has its own cause, or after the last case.
        """
        if self.done or not self.section.alike or not self.left():
            return False
        self.whole, self.question, self.interrupted = not self.whole, None, False
        return True

    def drop_question(self) -> bool:
        """Cancel a pending verdict on the whole cause. Return whether one was pending."""
        was_asking = self.whole
        self.whole, self.question, self.interrupted = False, None, False
        return was_asking

    def interrupt(self) -> None:
        """Cancel a pending verdict on the whole cause. If there was one, the next letter saves nothing."""
        was_asking = self.whole or self.interrupted
        self.drop_question()
        self.interrupted = was_asking

    def choose(
        self,
        choice: str,
        possible: Callable[[CaseName], bool],
        stamp: Callable[[CaseName], object] = lambda name: None,
    ) -> Step | None:
        """Return the verdicts to save, or None if the user has to confirm with the same letter.

        `possible` returns whether the choice can apply to another case of the cause. `stamp` returns a value that
        changes with a case or its verdict. If one has changed since the question, the user has to confirm again. This
        method saves nothing: see `save`.
        """
        if not self.whole:
            return Step(choice, self.name, (self.name,))
        names = tuple(name for name in self.left() if name == self.name or possible(name))
        unseen = frozenset(names) - self.seen
        stamps, asked = {name: stamp(name) for name in names}, self.question
        if asked is None or asked.choice != choice or asked.stamps != stamps:
            self.question = Question(choice, len(names), len(names) - len(unseen), stamps)
            self.changed()
            return None
        return Step(choice, self.name, names, unseen)

    def save(self, step: Step, edit: Any) -> None:
        """Record verdicts that were saved, and go to the next case without a verdict."""
        # The same verdict again within a second changes no file, so the newest edit is still the one before.
        if not self.steps or self.steps[-1].edit is not edit:
            self.steps.append(replace(step, before={name: self.given(name) for name in step.names}, edit=edit))
        for name in step.names:
            self._given[name] = Given(step.choice, name in step.unseen)
            for left in self._left.values():
                left.pop(name, None)
        self.drop_question()
        if not self.done and self.name in step.names:
            self.position = self._next_left(self.position + 1)
        self.changed()

    def undo(self, edit: Any) -> Step | None:
        """Remove and return the newest verdicts, and go back to their case. Return None if they are not of `edit`."""
        if not self.steps or self.steps[-1].edit is not edit:
            return None
        step = self.steps.pop()
        self._given.update(step.before)
        self._left.clear()
        self.position = self.names.index(step.at) if step.at in self.names else 0
        self.drop_question()
        self.changed()
        return step

    def forget_left(self) -> None:
        """Clear the cached cases without a verdict, because a verdict or a file has changed."""
        self._left.clear()

    def forget_earlier(self) -> None:
        """Clear what is known from earlier reviews. Verdicts given in this review stay."""
        self._left.clear()
        own = {name for step in self.steps for name in step.names}
        self._given = {name: given for name, given in self._given.items() if name in own}

    # The last page

    def outcome(self) -> "Outcome":
        """Return all cases of the review by verdict."""
        found: dict[str, list[CaseName]] = {}
        by_cause = 0
        for name in self.names:
            given, judgeable = self.given(name), self._judgeable(name)
            if judgeable == "error":
                kind = "errors"
            elif given is not None:
                kind = given.choice
                by_cause += given.by_cause
            else:
                kind = "passed" if judgeable == "passed" else "skipped"
            found.setdefault(kind, []).append(name)
        return Outcome(found, by_cause)

    def _next_left(self, start: int) -> int:
        """Return the position of the first case from `start` on to show, or else the end.

        Cases with a verdict of the user and cases that pass now are left out, unless all cases are shown again.
        """
        if self._again:
            return start
        left = (place for place in range(start, len(self.names)) if self.given(self.names[place]) is None)
        unjudged = (place for place in left if self._judgeable(self.names[place]) != "passed")
        return next(unjudged, len(self.names))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The cases by verdict (or `errors`, `passed`, `skipped`), and how many verdicts were given by cause."""

    cases: dict[str, list[CaseName]]
    by_cause: int

    def counts(self) -> Counter[str]:
        """Return the number of cases of each kind."""
        return Counter({kind: len(names) for kind, names in self.cases.items()})
