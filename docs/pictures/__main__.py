"""Take the pictures of the pages again.

python -m docs.pictures             all of them
python -m docs.pictures recording   only the recording in the README
python -m docs.pictures tour        only those of the tour
python -m docs.pictures faults      only that of the page about faults
"""

import asyncio
import os
import sys
from tempfile import TemporaryDirectory

from docs.pictures import faults, recording, tour

_MAKERS = {"recording": recording.make, "tour": tour.make, "faults": faults.make}
_KEPT = {"PATH", "HOME", "LANG", "TMPDIR"}


def main() -> None:
    """Take the pictures named on the command line, without the user's settings and keys."""
    names = sys.argv[1:] or list(_MAKERS)
    unknown = [name for name in names if name not in _MAKERS]
    if unknown:
        sys.exit(f"no pictures called {', '.join(unknown)}; there are {', '.join(_MAKERS)}")
    with TemporaryDirectory() as home:
        for name in set(os.environ) - _KEPT:
            del os.environ[name]
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = home
        for name in names:
            for file in asyncio.run(_MAKERS[name]()):
                sys.stdout.write(f"{file} {file.stat().st_size / 1024:.0f} KiB\n")


if __name__ == "__main__":
    main()
