"""The recording of a replayed case as an input of its verdict.

Verdicts of live cases do not depend on recordings. The option `--frozen` itself is one of the run's options.
"""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from workbench.events.events import Frozen
from workbench.files.file_access import read_regular
from workbench.files.walk import relative_to
from workbench.store.digests import Digests
from workbench.store.inputs import Bundle, Record

RECORDING = "recording"
"""The name of the frozen file among the inputs. Other files have their own name."""
_BESIDE = re.compile(r"[0-9a-f]{20}\.json")
_NAMED = re.compile(rb'_in"\s*:\s*"([0-9a-f]{20}\.json)"')
_DECLARATION, _CODE = "declaration of ", "code of "
_DIFFERS, _EQUAL = "differs from the agent's", "equals the agent's"


def runs_live(mode: str, on_miss: str, recording: Path) -> bool:
    """Return whether a case is not replayed, because it has no recording and calls without one are made."""
    return bool(mode) and on_miss == "live" and not os.path.lexists(recording)


def recording_files(file: Path) -> tuple[Path, ...]:
    """Return a frozen file and the files with large values that it names."""
    try:
        return file, *files_beside(file, read_regular(file))
    except (OSError, ValueError):
        return (file,)


def files_beside(file: Path, content: bytes) -> Sequence[Path]:
    """Return the files with large values that the content of a frozen file names, sorted."""
    return sorted(file.with_name(name.decode("ascii")) for name in set(_NAMED.findall(content)))


def frozen_bundle(
    files: Sequence[Path],
    root: Path,
    digests: Digests,
    frozen: Frozen,
    changed: Collection[Path] = (),
    mark: str = "",
) -> Bundle:
    """Return the inputs of a case that was replayed from `files` (as in `recording_files`).

    Tools that differ from the recorded ones are inputs, too. Files in `changed` have the value `mark` instead of a
    digest.
    """
    values = {path.name: mark if path in changed else digests.file(path) for path in files}
    values[RECORDING] = values.pop(files[0].name)
    kinds = ((_DECLARATION if tool in frozen.redeclared else _CODE, tool) for tool in frozen.drifted)
    differing = {f"{kind}{tool}": _DIFFERS for kind, tool in kinds}
    return Bundle({"frozen": {**values, **differing}}, relative_to(files[0], root))


def frozen_bundles_like(then: Record, root: Path, digests: Digests) -> tuple[Bundle, ...]:
    """Return the current values of the recordings in `then`.

    A tool that differed is expected to be equal. So the verdict is stale until the case is frozen again.
    """
    return tuple(_like(bundle, root, digests) for bundle in then.bundles if "frozen" in bundle.inputs)


def _like(then: Bundle, root: Path, digests: Digests) -> Bundle:
    if then.file is None:
        return then
    file = root / then.file
    values = {name: _current(name, file, digests) for name in then.inputs["frozen"]}
    return Bundle({"frozen": values}, then.file)


def _current(name: str, file: Path, digests: Digests) -> str:
    if name.startswith((_DECLARATION, _CODE)):
        return _EQUAL
    return digests.file(file.with_name(name) if _BESIDE.fullmatch(name) else file)
