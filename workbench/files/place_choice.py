"""The choice of a place, which is cheap to import."""

from dataclasses import dataclass
from typing import Final

LOCALLY: Final = "local"
"""The word for this machine."""
DASK: Final = "dask"
"""The word for the cluster that Dask's configuration names."""
_SCHEMES: Final = ("dask://", "tls://")


@dataclass(frozen=True, slots=True)
class PlaceChoice:
    """The place that the user chose for agents. `python` is the interpreter on workers, "" for that of the worker."""

    word: str = LOCALLY
    """`local`, `dask`, `dask://host:8786` or `tls://host:8786`; "" for the place of the project's settings."""
    python: str = ""
    env: tuple[str, ...] = ()
    """Names of variables that travel, besides those in the agents' `.env`."""
    name: str = ""
    """The name of the place in the settings, or ""."""

    @property
    def is_local(self) -> bool:
        """Whether agents run on this machine as usual."""
        return self.word == LOCALLY

    @property
    def is_known(self) -> bool:
        """Whether this is a place that exists: this machine or a Dask cluster."""
        return self.word in (LOCALLY, DASK) or (
            self.word.startswith(_SCHEMES) and len(self.word.partition("://")[2]) > 0
        )

    @property
    def check(self) -> str:
        """The command that tries the place: "`agent-workbench check --on dask` tries each worker"."""
        # Imported late, because the first frame needs no command line.
        from shlex import join

        # A name in the settings stands for the place and its interpreter.
        words = ["--on", self.name or self.word or "PLACE"]
        words += ["--remote-python", self.python] if self.python and not self.name else []
        return f"`agent-workbench check {join(words)}` tries each worker"
