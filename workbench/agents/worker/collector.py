"""How often Python looks for objects that only hold each other."""

from __future__ import annotations

import gc

_MADE = 10_000
"""Objects that are made, and still there, until it looks."""


def collect_rarely() -> None:
    """Has it look less often than at every 700 objects, which took a fourth of importing google-adk and a twentieth
    of each case: nearly all that an import makes stays, and nearly all that a case makes goes by itself. To be called
    before imports; an agent that sets its own limit has that."""
    gc.set_threshold(_MADE)
