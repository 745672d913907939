"""Names on a command line that nothing has, refused before anything is imported that opens evalsets.

Only a glance is taken: where that does not tell, nothing happens here, and what opens the files refuses the same later.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.discovery import agent_at
from workbench.agents.ownership import relative_to
from workbench.agents.targets import absolute, at_its_place, discover_for, find_root
from workbench.engine.plan.target_words import Selection, Target, evalsets_called, refuse_unknown_cases, searched
from workbench.regular_file import read_regular

MOST_BYTES = 1 << 22
"""More, of all files together, is left to the index of cases, which is quicker than Python's reader."""


@dataclass(frozen=True, slots=True)
class Glance:
    """An evalset of today's schema: what it and its cases are called."""

    file: Path
    eval_set_id: str
    case_ids: tuple[str, ...]


def refuse_unknown(selection: Selection, folder: Path) -> None:
    """Looks for the ids in `selection` in all evalsets that it can mean; `folder` as for `open_selection`.

    Raises:
        UsageFaultError: no evalset, or no case, has one of them.
    """
    wanted = [target for target in selection.targets if target.path is None or target.case_ids]
    paths = [absolute(path) for path in searched(selection, folder)]
    # A file may be a whole project's, so an agent's folder does not say all that it means.
    if not (wanted or selection.case_ids) or not all(map(_says_all, paths)):
        return
    root = find_root(Path(os.path.commonpath(paths)))
    evalsets = _glance(_evalsets([at_its_place(path, root) for path in paths], root))
    if evalsets is None:
        return
    for target in wanted:
        _look_for(target, evalsets, root)
    if evalsets:
        _look_for_cases(selection, evalsets)


def glance(file: Path) -> Glance | None:
    """What the file says by a plain reading; None where that is not the whole truth."""
    try:
        content = json.loads(read_regular(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("eval_cases"), list):
        return None
    ids = [_id_of(case) for case in content["eval_cases"]]
    named = [content.get("eval_set_id"), *ids]
    if not all(isinstance(name, str) and name for name in named):
        return None
    return Glance(file, content["eval_set_id"], tuple(ids))


def _evalsets(places: Sequence[Path], root: Path) -> list[Path]:
    if all(place.is_file() for place in places):
        return list(dict.fromkeys(places))
    found, _ = discover_for(places, root)
    return [file for file in found.evalsets if any(file.is_relative_to(place) for place in places)]


def _glance(files: Sequence[Path]) -> list[Glance] | None:
    """All of them; None where one does not tell, or they are too large."""
    try:
        if sum(file.stat().st_size for file in files) > MOST_BYTES:
            return None
    except OSError:
        return None
    seen = [glance(file) for file in files]
    found = [one for one in seen if one is not None]
    return found if len(found) == len(seen) else None


def _says_all(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and agent_at(path)[0] is None)


def _id_of(case: Any) -> Any:
    return case.get("evalId", case.get("eval_id")) if isinstance(case, dict) else None


def _look_for(target: Target, evalsets: Sequence[Glance], root: Path) -> None:
    if target.path is not None:
        path = at_its_place(absolute(target.path), root)
        meant = [one for one in evalsets if one.file == path]
    else:
        meant = evalsets_called(target.name, evalsets)
    if len(meant) == 1:
        refuse_unknown_cases(target.case_ids, meant[0].case_ids, relative_to(meant[0].file, root))


def _look_for_cases(selection: Selection, evalsets: Sequence[Glance]) -> None:
    """`--case`: where the targets themselves name cases, or evalsets by their ids, what is meant is less than all."""
    if any(target.path is None or target.case_ids for target in selection.targets):
        return
    refuse_unknown_cases(selection.case_ids, {case_id for one in evalsets for case_id in one.case_ids})
