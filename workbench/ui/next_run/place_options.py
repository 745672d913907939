"""The place of the next runs: this machine, or other ones."""

import shlex
from dataclasses import dataclass
from typing import Any

from workbench.files.run_options import LOCALLY, PlaceChoice
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item, Search, searching

_HERE = PlaceChoice()
_PYTHON, _ENV = "--remote-python", "--env"
_LONGEST_IN_BAR = 24
_ON_OTHERS = "Agents run there. Judges, limits, the budget and stored runs stay on this machine."


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The place of the next runs. `chosen` None means that of the project, which is `project`.

    `named` are the places in the project's settings, with their names.
    """

    chosen: PlaceChoice | None = None
    project: PlaceChoice | None = None
    named: tuple[PlaceChoice, ...] = ()

    @property
    def label(self) -> str:
        """The place in words, which are safe text: `local`, `cluster (pyproject.toml)`."""
        if self.chosen is None and self.project is not None:
            return f"{_name(self.project)} (pyproject.toml)"
        return _name(self.chosen or _HERE)

    @property
    def for_bar(self) -> str:
        """The place of the next run, or "" if it is this machine."""
        effective = self.chosen or self.project or _HERE
        return "" if effective.is_local else f"on {one_line(_name(effective), limit=_LONGEST_IN_BAR)}"

    def run_options(self) -> dict[str, Any]:
        """Return the fields of `RunOptions`."""
        return {} if self.chosen is None else {"place": self.chosen}

    def search(self) -> Search:
        """Return a search over the known places. It also offers what is typed, with the options of the command line."""
        known = [PlaceChoice(choice.name) for choice in self.named]
        items = [
            Item("local", _HERE, help="Agents run on this machine."),
            *(
                Item(_name(choice), mine, hint=one_line(choice.word, limit=40), help=_ON_OTHERS)
                for choice, mine in zip(self.named, known, strict=True)
            ),
        ]
        others = [one for one in (self.chosen, self.project) if one is not None and not one.is_local]
        items += [Item(_name(one), one, help=_ON_OTHERS) for one in others if not one.name and one not in known]
        find = searching(list(dict.fromkeys(items)))

        def search(query: str) -> list[Item]:
            found = list(find(query))
            if not query.strip() or query.strip() in {item.label for item in found}:
                return found
            return [_typed(query), *found] if ":" in query else [*found, _typed(query)]

        return search


def read_place(text: str) -> PlaceChoice:
    """Read a place as it is written behind `--on`, with its options.

    Raises:
        ValueError: the text is not one place with known options.
    """
    words, python, env = list[str](), "", list[str]()
    parts = iter(shlex.split(text))
    for part in parts:
        if part == _ENV or part.startswith(f"{_ENV}="):
            env.append(part.partition("=")[2] or next(parts, ""))
            if not env[-1]:
                raise ValueError(f"{_ENV} needs the name of a variable")
        elif part == _PYTHON or part.startswith(f"{_PYTHON}="):
            python = part.partition("=")[2] or next(parts, "")
            if not python:
                raise ValueError(f"{_PYTHON} needs a path")
        elif part.startswith("-"):
            raise ValueError(f"the options here are {_PYTHON} and {_ENV}")
        else:
            words.append(part)
    if len(words) != 1:
        raise ValueError("type one place, such as dask://host:8786")
    return PlaceChoice(words[0], python, tuple(env))


def _typed(text: str) -> Item:
    label = one_line(text.strip(), limit=100)
    try:
        return Item(
            label, read_place(text), hint="use it", help=f"{_ON_OTHERS} {_PYTHON} PATH and {_ENV} NAME work here."
        )
    except ValueError as error:
        return Item(label, None, why_not=one_line(str(error)))


def _name(choice: PlaceChoice) -> str:
    return one_line(choice.name or choice.word or LOCALLY, limit=100)
