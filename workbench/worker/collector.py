"""The frequency of Python's garbage collection."""

from __future__ import annotations

import gc

_THRESHOLD = 10_000
"""Number of surviving new objects that triggers a collection."""


def collect_rarely() -> None:
    """Collect less often than every 700 objects, Python's default.

    The default took a quarter of the time to import google-adk and a twentieth of each case. Nearly all objects of an
    import stay, and nearly all objects of a case are freed without a collection. Call this before imports. An agent can
    still set its own threshold.
    """
    gc.set_threshold(_THRESHOLD)
