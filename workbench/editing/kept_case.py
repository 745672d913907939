"""A new case with its recording, as one edit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.editing.evalset_file import EvalsetFile, new_evalset
from workbench.editing.frozen_folders import FrozenFolders
from workbench.editing.saving import Contents
from workbench.files.frozen_path import frozen_path
from workbench.files.opening import name_of
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import Recording
from workbench.text.json_values import case_id, string


def kept_contents(file: Path, before: bytes | None, cases: list[tuple[dict[str, Any], Recording | None]]) -> Contents:
    """Return the edit that appends cases to an evalset, each with its frozen file if it has a recording. Reads files.

    `before` is the evalset's content, or None for a new file.

    Raises:
        RejectedError: ADK would reject a case, or its ID is used.
        EditError: a case is nested too deeply.
        OSError: a frozen file there cannot be read.
        RecursionError: a recorded value is nested too deeply.
    """
    evalset = EvalsetFile(new_evalset(name_of(file)) if before is None else before)
    content = evalset.added(len(evalset.ids), [case for case, _ in cases])
    folders = FrozenFolders()
    for case, recording in cases:
        if recording is not None:
            name = string(evalset.frame().get("eval_set_id")) or name_of(file)
            own = replace(recording, eval_set_id=name, eval_id=case_id(case))
            for path, frozen in frozen_contents(frozen_path(file, case_id(case)), own).items():
                folders.put(path, frozen)
    return {**folders.contents(), file: (before, content)}
