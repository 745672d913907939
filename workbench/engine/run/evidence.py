"""What a run keeps of what determines it: the agents' files as it begins, and those that they are seen to read."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import Plan
from workbench.engine.processes.children import Children
from workbench.engine.run.determined import determined, new_salt
from workbench.engine.run.provenance import Kept, read_sources, versions
from workbench.engine.run.recorder import EventWriter
from workbench.events import Sources


class Evidence:
    """Of one run, kept by its `writer` (None: nothing is). `known`: what an interrupted run that is resumed has kept
    already. No fault in any of it may end a run."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        children: Children,
        writer: EventWriter | None,
        known: Sources | None = None,
    ) -> None:
        self._plan = plan
        self._options = options
        self._children = children
        self._writer = writer
        self._resumed = known is not None
        self._kept = Kept(known or {}, {}, {})
        self._determined: dict[str, Any] = {}
        self._versions: dict[str, Any] = {}
        self.further: Sources = {}
        """Files that agents were seen to read since the run began."""
        self._count = 0
        """How many files they were seen to read when that was looked at last."""
        self._clean: Callable[[str], str] = str

    def read(self, clean: Callable[[str], str]) -> None:
        """Reads the agents' files as they are before the first case; `clean` takes secrets out. For a thread."""
        self._clean = clean
        if self._writer is None or self._resumed:
            return
        self._versions = versions(self._plan.agents.values())
        self._kept = self._keep(known=None)
        self._count = self._files_read()
        with contextlib.suppress(Exception):  # Then the run cannot be resumed.
            self._determined = determined(self._plan, self._options, self._kept, new_salt())

    def announced(self) -> dict[str, Any]:
        """The fields of `RunStarted` that tell it."""
        kept = self._kept
        return {
            "versions": self._versions,
            "models": dict(kept.models),
            "sources": kept.sources,
            "determined": self._determined,
        }

    async def news(self) -> Sources:
        """What the agents were seen to read since this was asked last; whoever resumes the run must know it."""
        now = self._files_read()
        if self._writer is None or now == self._count:
            return {}
        self._count = now
        known = {agent: {**files, **self.further.get(agent, {})} for agent, files in self._kept.sources.items()}
        kept = await asyncio.to_thread(self._keep, known)
        news = {agent: files for agent, files in kept.sources.items() if files}
        for agent, files in news.items():
            self.further.setdefault(agent, {}).update(files)
        return news

    def _files_read(self) -> int:
        footprints = self._children.footprints
        return sum(len(footprints.get(setting.agent.folder, ())) for setting in self._plan.agents.values())

    def _keep(self, known: Sources | None) -> Kept:
        """Keeps the agents' files that are not `known` yet."""
        if self._writer is None:
            return Kept({}, {}, {})
        try:
            kept = read_sources(self._plan.agents, self._children.footprints, self._clean, known)
            self._writer.keep(kept.contents)
        except Exception:
            return Kept({}, {}, {})
        return kept
