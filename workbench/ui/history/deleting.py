"""Deletion of stored runs after a confirmation, for the history and for an open run."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual.app import App

from workbench.store.history.run_names import baseline, delete_runs
from workbench.store.history.summary import ListedRun
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.session import run_labels


def reason_undeletable(runs: Sequence[ListedRun], running: str) -> str:
    """Return why these runs cannot be deleted, or "". `running` is the ID of the active run."""
    if any(run.adk for run in runs):
        return "results of ADK are not deleted here"
    if any(run.run_id == running for run in runs):
        return "this run is still active"
    return ""


async def confirm_delete(app: "App[object]", state: Path, runs: Sequence[ListedRun]) -> bool:
    """Ask whether to delete these runs. Call it in a worker."""
    title = f"delete {'this run' if len(runs) == 1 else counted(len(runs), 'run')} for good?"
    names = "; ".join(f"{one_line(run.run_id, limit=60)}: {run_labels.counts_in_words(run.outcomes)}" for run in runs)
    pinned = await asyncio.to_thread(baseline, state)
    if any(run.run_id == pinned for run in runs):
        names = f"{names}. This includes the baseline"
    items = [Item("keep", False, help=names), Item("delete", True, help=f"{names}. This cannot be undone.")]
    return bool(await app.push_screen_wait(PickScreen(title, searching(items))))


async def delete(state: Path, runs: Sequence[ListedRun]) -> tuple[str, bool]:
    """Delete runs. Return a message, and whether any run was deleted."""
    deleted = await asyncio.to_thread(delete_runs, state, [run.run_id for run in runs])
    message = f"{counted(len(deleted), 'run')} deleted"
    if len(deleted) < len(runs):
        message += f", {len(runs) - len(deleted)} could not be deleted"
    return message, bool(deleted)
