"""Exporters: the forms that a stored run can be handed on in."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from workbench.exporting.besides import Besides, read_besides
from workbench.plugins import ExtensionPoint
from workbench.prices import Prices
from workbench.store import Store

Pieces: TypeAlias = Iterable[bytes]
"""The content of a file, which need not fit into memory as a whole."""


@dataclass(frozen=True)
class ExportedRun:
    """A run that is handed on: `store` has it as its newest run. `versions` are the packages it ran with, as far as
    they are known. `state` is the folder with the other runs of the project, None if they do not matter. `warn` takes
    what could not be read."""

    store: Store
    versions: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    state: Path | None = None
    warn: Callable[[str], None] = lambda message: None

    @cached_property
    def besides(self) -> Besides:
        """The pass rates of earlier runs, and the user's triage."""
        found = Besides() if self.state is None else read_besides(self.store, self.state)
        for trouble in found.trouble:
            self.warn(trouble)
        return found


@dataclass(frozen=True)
class Exporter:
    """A form to export runs in. `summary` is its line of help. `write` gives the content of the file, or several files
    by name. With `ending`, a path without a suffix names a folder for such files. `needs` are packages it imports."""

    name: str
    summary: str
    ending: str
    write: Callable[[ExportedRun], Pieces | Mapping[str, Pieces]]
    many_files: bool = False
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Return the packages it needs that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]

    def files(self, run: ExportedRun) -> Mapping[str, Pieces]:
        """Return the files to be written, by name."""
        written = self.write(run)
        if isinstance(written, Mapping):
            return written
        # A report may call its run anything.
        name = re.sub(r"[^\w.-]", "_", run.store.run.run_id).lstrip(".") or "run"
        return {f"{name}{self.ending}": written}


EXPORTERS: Final = ExtensionPoint("exporters", Exporter)
