"""Runs deleted for good, after a question: from the list of them, and from one that is open."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual.app import App

from workbench.counting import counted
from workbench.history.listed_runs import ListedRun
from workbench.history.retention import delete_runs
from workbench.history.run_names import baseline
from workbench.text import one_line
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.history import run_labels
from workbench.ui.items import Item, searching


def reason_undeletable(runs: Sequence[ListedRun], running: str) -> str:
    """Why these runs cannot be deleted, "" if they can; `running` is the id of the run that is going on."""
    if any(run.adk for run in runs):
        return "ADK's result files are ADK's: the workbench does not delete them"
    if any(run.run_id == running for run in runs):
        return "it is still going on"
    return ""


async def confirm_delete(app: "App[object]", state: Path, runs: Sequence[ListedRun]) -> bool:
    """Whether the user wants them gone. In a worker."""
    title = f"delete {'this run' if len(runs) == 1 else counted(len(runs), 'run')} for good?"
    told = "; ".join(f"{one_line(run.run_id, limit=60)}: {run_labels.counts_in_words(run.counts)}" for run in runs)
    pinned = await asyncio.to_thread(baseline, state)
    if any(run.run_id == pinned for run in runs):
        told = f"The baseline is among them. {told}"
    items = [Item("keep", False, help=told), Item("delete", True, help=f"{told}. It cannot be undone.")]
    return bool(await app.push_screen_wait(PickScreen(title, searching(items))))


async def delete(state: Path, runs: Sequence[ListedRun]) -> tuple[str, bool]:
    """Deletes them; what came of it in words, and whether any is gone."""
    gone = await asyncio.to_thread(delete_runs, state, [run.run_id for run in runs])
    told = f"{len(gone)} deleted" if len(gone) == len(runs) else "not all could be deleted"
    return told, bool(gone)
