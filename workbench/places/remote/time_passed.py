"""The time that passes here and on another machine, and what of it counts for the time limits of cases."""

from collections.abc import Callable

from workbench.places.lease import ALIVE, LEASE, time_since_boot

SILENT = 2.0
"""Seconds without a message after which a machine with cases counts as silent. One without cases sends less."""


class Awake:
    """The time in which this process was running, in seconds. Call `look` often: a longer gap counts as sleep."""

    def __init__(self, clock: Callable[[], float] = time_since_boot, lease: float = LEASE) -> None:
        self._clock = clock
        self._lease = lease
        self._seen = clock()
        self._slept = 0.0

    @property
    def now(self) -> float:
        """The time at the last look, without sleep."""
        return self._seen - self._slept

    def look(self) -> bool:
        """Note that this process runs. Return whether it slept for so long that other machines have given up."""
        now = self._clock()
        gap, self._seen = now - self._seen, now
        if gap > SILENT:
            self._slept += gap
        return gap > self._lease


class Silence:
    """The silence of one machine. All times are those of `Awake`, in seconds."""

    def __init__(self, now: float) -> None:
        self.since = now
        """The time of the last message."""
        self.is_noticed = False
        """Whether the time is stopped because of it."""
        self._held = 0.0
        self._busy_since: float | None = None
        """Since when the machine has had cases, or None without any."""

    def heard(self, now: float, held: float | None = None) -> float:
        """Record a message. Return the seconds since the last one that count for no case and are not noticed yet.

        `held` is the time so far in which the host waited for us, as it says.
        """
        gap, self.since = max(0.0, now - self.since), now
        waited = 0.0 if held is None else min(max(0.0, held - self._held), gap)
        if held is not None:
            self._held = max(self._held, held)
        noticed, self.is_noticed = self.is_noticed, False
        if noticed:
            return 0.0
        return gap if gap > SILENT else waited

    def notice(self, now: float, *, busy: bool = True) -> float:
        """Return the seconds of a silence that is noticed now, or 0. `busy`: whether the machine has cases."""
        if not busy:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = now
        gap = now - self.since
        due = SILENT if self._busy_since is not None and now - self._busy_since >= SILENT else ALIVE + SILENT
        if self.is_noticed or gap <= due:
            return 0.0
        self.is_noticed = True
        return gap
