"""Preflight notice about cases without a recording."""

from collections.abc import Iterator, Sequence

from workbench.counting import counted
from workbench.engine.plan.plan import PlanEntry
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.source import AgentSource
from workbench.events import Noticed
from workbench.recordings.frozen_path import frozen_path


def recordings(entries: Sequence[tuple[PlanEntry, AgentSource]], options: RunOptions) -> Iterator[Noticed]:
    """Yield a notice if cases of a frozen run have no recording. `entries` has each case once."""
    if not options.frozen:
        return
    files = (frozen_path(source.evalset.file, entry.ref.eval_id) for entry, source in entries)
    missing = sum(not file.exists() for file in files)
    if missing:
        text = f"{missing:,} of {counted(len(entries), 'case')} {'has' if missing == 1 else 'have'} no recording"
        if options.on_miss == "live":
            yield Noticed("info", f"{text} and will run live", forecast=True)
        else:
            hint = "Run them without --frozen, then keep their calls with `agent-workbench freeze last`"
            yield Noticed("warning", f"{text} and will end with an error", hint, forecast=True)
