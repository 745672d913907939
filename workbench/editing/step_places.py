"""Places for steps of a transcript among the steps of a reference."""

from collections.abc import Mapping, Sequence

from workbench.editing.turn_steps import Step, Steps


class Places:
    """The reference's steps while they are changed. `partners` maps actual steps to expected ones."""

    def __init__(self, expected: Steps, actual: Steps, partners: Mapping[Step, Step]) -> None:
        self._expected, self._actual = expected, actual
        self._partners = dict(partners)
        self._every = list(expected.every)
        self._answers = dict(expected.answers)
        self.removed: set[Step] = set()

    @property
    def every(self) -> list[Step]:
        """The new list of steps."""
        return [step for step in self._every if step not in self.removed]

    @property
    def changed(self) -> bool:
        """Whether the list has other steps than before, or another order."""
        return self.every != self._expected.every

    @property
    def ids(self) -> set[str]:
        """IDs that calls already use."""
        return {step.id for step in self.every if step.kind in ("call", "response") and step.id}

    def reorder(self, common: Sequence[tuple[int, int]]) -> None:
        """Put common calls, given as positions (expected, actual), and their responses into the transcript's order.

        A call that only the reference has stays after the call that it followed.
        """
        place = dict(common)
        self._every = self.every
        keys: dict[Step, tuple[int, int]] = {}
        previous = -1
        for number, call in enumerate(self._expected.calls):
            previous = place.get(number, previous)
            keys[call] = (previous, number)
        calls = [step for step in self._every if step.kind == "call"]
        calls_now = sorted(calls, key=keys.__getitem__)
        self._refill(calls, calls_now)
        answered = [self._answers[call] for call in calls_now if call in self._answers]
        answered = [step for step in answered if step in set(self._every)]
        self._refill([step for step in self._every if step in set(answered)], answered)
        for call in calls_now:
            response = self._answers.get(call)
            if response in self._every and self._every.index(response) < self._every.index(call):
                self._every.remove(response)
                self._every.insert(self._every.index(call) + 1, response)

    def add_call(self, actual: Step, call: Step, response: Step | None = None) -> None:
        """Add a call and its response after the last preceding call that the reference has too."""
        at = 0
        before = self._before(actual, "call")
        if before is not None:
            at = self._every.index(before) + 1
            while at < len(self._every) and self._every[at].kind == "response":
                at += 1
        elif any(step.kind == "call" for step in self._every):
            at = next(place for place, step in enumerate(self._every) if step.kind == "call")
        else:
            anything = self._before(actual, None)
            at = self._end(0 if anything is None else self._every.index(anything) + 1)
        self._every.insert(at, call)
        self._partners[actual] = call
        if response is not None:
            self._every.insert(at + 1, response)
            self._answers[call] = response

    def add_text(self, actual: Step, text: Step) -> None:
        """Add a text after the step that precedes it in the transcript, between its neighbors among the texts."""
        before, after = self._before(actual, "text"), self._after(actual)
        lowest = 0 if before is None else self._every.index(before) + 1
        highest = len(self._every) if after is None else self._start(self._every.index(after))
        anything = self._before(actual, None)
        at = 0 if anything is None else self._every.index(anything) + 1
        if anything in self._answers and self._answers[anything] in self._every:
            at = max(at, self._every.index(self._answers[anything]) + 1)
        at = self._end(min(max(at, lowest), max(lowest, highest)))
        if at > highest >= lowest:
            at = highest
        self._every.insert(at, text)
        self._partners[actual] = text

    def _before(self, actual: Step, kind: str | None) -> Step | None:
        found = None
        for step in self._actual.every:
            if step is actual:
                return found
            if kind in (None, step.kind) and step in self._partners:
                found = self._partners[step]
        return found

    def _after(self, actual: Step) -> Step | None:
        place = self._actual.every.index(actual)
        found = (self._partners.get(step) for step in self._actual.every[place + 1 :] if step.kind == "text")
        return next((step for step in found if step is not None), None)

    def _end(self, at: int) -> int:
        """Return `at`, or the end of the event that contains it."""
        while 0 < at < len(self._every) and self._same_event(at):
            at += 1
        return at

    def _start(self, at: int) -> int:
        while 0 < at < len(self._every) and self._same_event(at):
            at -= 1
        return at

    def _same_event(self, at: int) -> bool:
        event = self._every[at].event
        return event is not None and self._every[at - 1].event is event

    def _refill(self, before: Sequence[Step], after: Sequence[Step]) -> None:
        """Put the steps `after` at the places of the steps `before`, one by one."""
        slots = [self._every.index(step) for step in before]
        for slot, step in zip(slots, after, strict=True):
            self._every[slot] = step
