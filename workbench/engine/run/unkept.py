"""What may be shown of events that could not be written: never a verdict that the disk does not have."""

import dataclasses

from workbench.events import CaseError, CaseFinished, Event, FilesRead, RepeatsDropped


def as_far_as_kept(event: Event, failure: OSError) -> Event | None:
    """What is left of an event that is not in the journal; None: nothing. A case's end stays, as cancelled: when the
    run goes on, the case is done again, and until then nobody shall build on what it came to."""
    if isinstance(event, CaseFinished):
        if event.error is not None:
            return event
        reason = failure.strerror or str(failure)
        error = CaseError("cancelled", f"its verdict is not kept: the run cannot be written any more ({reason})")
        return dataclasses.replace(event, status="cancelled", error=error)
    return None if hasattr(event, "case") or isinstance(event, FilesRead | RepeatsDropped) else event


def why_stopped(failure: OSError) -> tuple[str, str]:
    """Why a run was stopped that cannot be written any more, and the way out."""
    where = f" to {failure.filename}" if failure.filename else ""
    reason = failure.strerror or str(failure)
    return (
        f"the run was stopped: it cannot be written{where} any more ({reason})",
        "What is there is kept; once it can be written again, the same command (on the screen: resume in the palette)"
        " goes on with it",
    )
