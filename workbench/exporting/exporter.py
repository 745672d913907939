"""Exporters: the file formats for stored runs."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from workbench.exporting.run_context import RunContext, read_run_context
from workbench.plugins import ExtensionPoint
from workbench.prices import Prices
from workbench.store import Store

Pieces: TypeAlias = Iterable[bytes]
"""Content of a file in pieces, which need not fit into memory together."""


@dataclass(frozen=True)
class ExportedRun:
    """A run to export: the newest run in `store`.

    `versions` are the packages it ran with, as far as known. `state` is the folder with the project's other runs, or
    None to ignore them. `warn` is called with each message about data that could not be read.
    """

    store: Store
    versions: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    state: Path | None = None
    warn: Callable[[str], None] = lambda message: None

    @cached_property
    def besides(self) -> RunContext:
        """Pass rates of past runs, and the user's triage."""
        found = RunContext() if self.state is None else read_run_context(self.store, self.state)
        for trouble in found.trouble:
            self.warn(trouble)
        return found


@dataclass(frozen=True)
class Exporter:
    """A file format to export runs in.

    `summary` is its line of help. `write` returns the content of the file, or several files by name. With `ending`, a
    path without a suffix names a folder for such files. `needs` are packages that it imports.
    """

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
        """Return the files to write, by name."""
        written = self.write(run)
        if isinstance(written, Mapping):
            return written
        # The run ID in a report may contain any character.
        name = re.sub(r"[^\w.-]", "_", run.store.run.run_id).lstrip(".") or "run"
        return {f"{name}{self.ending}": written}


EXPORTERS: Final = ExtensionPoint("exporters", Exporter)
