"""Proposed changes of many cases, of which the user chooses some. All of them are one edit."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from workbench.editing.evalset_file import EvalsetFile
from workbench.editing.saving import Contents
from workbench.editing.whole_cases import CaseSelection, GoneError, OpenedFiles


class Part(Protocol):
    """One change in a case: a difference to accept (`Hunk`), or a replaced value (`Replacement`)."""

    @property
    def turn(self) -> int | None:
        """The turn, counted from 0, or None outside of turns."""
        ...

    @property
    def what(self) -> str:
        """The changed value, in raw words."""
        ...

    @property
    def old(self) -> Any:
        """The value before, or `ABSENT`."""
        ...

    @property
    def new(self) -> Any:
        """The value afterwards, or `ABSENT`."""
        ...


@dataclass(frozen=True, eq=False)
class Proposal:
    """Possible changes of one case.

    `case` selects it, `before` is its JSON, and `after` returns its JSON with some of the `parts`. Proposals are
    compared by identity.
    """

    case: CaseSelection
    before: Any
    parts: Sequence[Any]
    """Each is a `Part` and can be hashed."""
    after: Callable[[Collection[Any]], Any] = field(repr=False)

    @property
    def file(self) -> Path:
        """The file of the case."""
        return self.case.file

    @property
    def name(self) -> str:
        """The ID of the case, raw."""
        return self.case.names[0]


Choice = Mapping[Proposal, Collection[Any]]
"""The chosen parts of each proposal."""


def written(opened: OpenedFiles, choice: Choice) -> Contents:
    """Return the contents of the files with the chosen parts.

    Raises:
        GoneError: a case is gone or has changed since it was proposed.
        RejectedError: ADK would reject a changed case.
        EditError: a file cannot be changed safely.
    """
    after: dict[Path, EvalsetFile] = {}
    for proposal, parts in choice.items():
        if not parts:
            continue
        (place,) = proposal.case.places(opened)
        evalset = after.get(proposal.file, opened[proposal.file])
        if evalset.case(place) != proposal.before:
            raise GoneError(f"{proposal.file.name} was changed by another program: {proposal.name} is different now")
        after[proposal.file] = evalset.edited(place, proposal.after(parts))
    return {file: (opened[file].content, evalset.content) for file, evalset in after.items()}
