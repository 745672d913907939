"""Editing one value in a 54 MB evalset, against reading and writing the file plainly.

    python -m benchmarks.edit_large [--rounds 5]

Both in turn, in one process, on the same disk. "Plainly" is what a program does that may not lose a file: read it,
write it into a new file, fsync, rename. The edit is what the editor does from `e` to the message that it is saved, in
a workbench that has the file open: read it, compare it with what was opened, validate the changed case, compare with
what is on the disk by then, keep the edit for undo, write. Goal: at most 3 times plainly. The second figure also lists
the 20 000 cases anew, as for a file that nobody has opened yet.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.open_large import _cases
from workbench.editing.case_edit import with_value
from workbench.editing.case_rows import rows_of
from workbench.editing.saving import Saver
from workbench.editing.whole_cases import CaseSelection
from workbench.files.evalset import EvalsetDocument, open_evalset
from workbench.ui.editing.drafts import open_case

GOAL = 3.0
_IN_THE_MIDDLE = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "large.evalset.json")
        content = {"eval_set_id": "large", "eval_cases": list(_cases())}
        file.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
        saver = Saver(Path(folder, ".workbench"), Path(folder))
        edit(file, saver, -1)  # validators are built on first use
        plain_seconds, edit_seconds, fresh_seconds = [], [], []
        for number in range(rounds):
            plain_seconds.append(_seconds(lambda: plainly(file)))
            document = open_evalset(file)
            edit_seconds.append(_seconds(lambda n=number, seen=document: edit(file, saver, n, seen)))  # type: ignore[misc]
            fresh_seconds.append(_seconds(lambda n=number: edit(file, saver, -2 - n)))  # type: ignore[misc]
        size = file.stat().st_size / 1e6
    base = statistics.median(plain_seconds)
    print(f"{size:.0f} MB: read and written plainly {base * 1000:.0f} ms")
    ratio = _told("one value edited and saved", edit_seconds, base)
    print(f"  goal: at most {GOAL:g} × plainly: {'ok' if ratio <= GOAL else 'MISSED'}")
    _told("the same, with opening the file", fresh_seconds, base)
    return 0 if ratio <= GOAL else 1


def _told(what: str, seconds: list[float], base: float) -> float:
    median = statistics.median(seconds)
    print(f"  {what:<32} {median * 1000:4.0f} ms, ratio {median / base:.2f}")
    return median / base


def plainly(file: Path) -> None:
    """Read the file and write it safely."""
    content = file.read_bytes()
    new = file.with_suffix(".new")
    with new.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)


def edit(file: Path, saver: Saver, number: int, document: EvalsetDocument | None = None) -> None:
    """Do the editor's work from `e` to the message that the file is saved. Without `document`, open the file first."""
    document = document or open_evalset(file)
    ids = [case.eval_id for case in document.cases]
    draft = open_case(CaseSelection(file, ids, [_IN_THE_MIDDLE]), document)
    row = next(row for row in rows_of(draft.value) if row.kind == "user")
    value = with_value(draft.value, row.location, f"edited {number}")
    saver.save("edit", {file: (draft.evalset.content, draft.after(value).content)})


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
