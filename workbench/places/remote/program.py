"""The host program as one file that travels to other machines."""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.places import landing

_SOME_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class HostProgram:
    """The host program as a zip file, and the digest under which other machines keep it."""

    digest: str
    archive: bytes

    @classmethod
    def of(cls, sources: Mapping[str, bytes]) -> "HostProgram":
        """Pack files, given by their relative paths. Equal files give an equal digest."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in sorted(sources.items()):
                archive.writestr(zipfile.ZipInfo(path, _SOME_DATE), content, zipfile.ZIP_DEFLATED)
        return cls(hashlib.sha256(packed.getvalue()).hexdigest()[:32], packed.getvalue())


def landing_source() -> str:
    """Return the text of the module that stores and starts the program on the other machine."""
    return Path(landing.__file__).read_text(encoding="utf-8")
