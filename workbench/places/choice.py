"""The choice of a place, which is cheap to import."""

from typing import Final

from workbench.fast_dataclass import dataclass

LOCALLY: Final = "local"
"""The word for this machine."""
DASK: Final = "dask"
"""The word for the cluster that Dask's configuration names."""
_SCHEMES: Final = ("dask://", "tls://")


@dataclass(frozen=True, slots=True)
class PlaceChoice:
    """Where agents run, as the user chose it. `python` is the interpreter on other machines, "" if none was named."""

    word: str = LOCALLY
    """`local`, `ssh:host1,host2` and so on; "" for the place of the project's settings."""
    python: str = ""
    insecure: bool = False
    """Whether a connection that others can read and change is accepted."""
    slots: int | None = None
    """Number of cases at a time on each machine, or None to derive it."""
    name: str = ""
    """The name of the place in the settings, or ""."""

    @property
    def is_local(self) -> bool:
        """Whether agents run on this machine as usual."""
        return self.word == LOCALLY

    @property
    def is_cluster(self) -> bool:
        """Whether agents run on a Dask cluster."""
        return self.word == DASK or self.word.startswith(_SCHEMES)

    @property
    def address(self) -> str:
        """The place without the number of slots at its end: `ssh:host1,host2`."""
        address, star, slots = self.word.rpartition("*")
        return address if star and slots.isdecimal() else self.word

    @property
    def check(self) -> str:
        """What tries the machines: "`agent-workbench check --on ssh:one,two` tries each machine"."""
        # Imported late, because the first frame needs no command line.
        from shlex import join

        # A name in the settings stands for the place and its interpreter.
        words = ["--on", self.name or self.word or "PLACE"]
        words += ["--remote-python", self.python] if self.python and not self.name else []
        words += ["--insecure-place"] if self.insecure else []
        return f"`agent-workbench check {join(words)}` tries each machine"
