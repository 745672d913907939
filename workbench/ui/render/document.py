"""What a pane shows: lines, and where in them the turns begin."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from workbench.agents.workspace import EvalsetEntry
from workbench.model.evalset import EvalCase
from workbench.store import CaseRecord
from workbench.ui.render.lines import Line


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at. `record`: an execution of a case; `case`: the case as it stands in its file; `entry`: that
    file. A case that never ran has no record, a row that stands for a file (or a case that cannot be read) no case."""

    record: CaseRecord | None = None
    entry: EvalsetEntry | None = None
    case: EvalCase | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for two subjects that are the same case to a reader, in whatever state it is."""
        repeat = self.record.ref.repeat if self.record is not None else 1
        if self.entry is not None:
            name = (
                self.case.eval_id
                if self.case is not None
                else self.record.ref.eval_id
                if self.record is not None
                else None
            )
            return self.entry.file, name, repeat
        return (self.record.ref if self.record is not None else None,)

    @property
    def stage(self) -> tuple[object, ...]:
        """Another value whenever there may be something else to show, as long as the subject before is kept."""
        record = self.record
        if record is None:
            return id(self.entry), id(self.case)
        acted = sum(len(turn.acted) + (turn.actual is not None) for turn in record.turns)
        printed = tuple((len(text), text[-20:]) for text in record.output.values())
        scored = tuple((result.name, result.status, result.score) for result in record.metrics.values())
        return (
            id(record),
            id(self.entry),
            id(self.case),
            record.state,
            len(record.turns),
            acted,
            scored,
            printed,
            record.error is None,
        )


@dataclass(slots=True)
class Document:
    """Lines laid out for one width. `turns` holds the line at which each turn begins, `opening` the index of the
    turn to open at (None: at the top)."""

    lines: list[Line] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    opening: int | None = None

    def add(self, lines: Iterable[Line]) -> None:
        self.lines.extend(lines)

    def gap(self) -> None:
        """A blank line, unless there is one or nothing above."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    @property
    def folded(self) -> bool:
        """Whether something is cut or folded that a full view would show."""
        return any(segment.style == "fold" for line in self.lines for segment in line)

    def turn_at(self, line: int) -> int | None:
        """The turn that `line` belongs to; the first one for what stands above it."""
        if not self.turns:
            return None
        return max(bisect_right(self.turns, line) - 1, 0)
