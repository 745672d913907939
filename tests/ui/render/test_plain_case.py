"""The plain text of a case, as `--print-detailed-results` prints it."""

import subprocess
import sys
from pathlib import Path

from tests.ui.transcripts import RAISED, execute, late_parcel, recorded, turn
from workbench.ui.render.plain_case import plain_case

GOLDEN = Path(__file__).parent / "golden"


def test_a_failed_case_reads_like_this() -> None:
    found = "\n".join(plain_case(late_parcel(), 80)) + "\n"
    assert found == (GOLDEN / "late_parcel_80.txt").read_text(encoding="utf-8")


def test_in_a_wide_terminal_expected_and_actual_stand_side_by_side() -> None:
    found = "\n".join(plain_case(late_parcel(), 120)) + "\n"
    assert found == (GOLDEN / "late_parcel_120.txt").read_text(encoding="utf-8")


def test_an_error_reads_like_this() -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi")], error=RAISED, unfinished=True)
    found = "\n".join(plain_case(record, 60)) + "\n"
    assert found == (GOLDEN / "raised_60.txt").read_text(encoding="utf-8")


def test_it_needs_no_textual(repository: Path) -> None:
    code = "import sys, workbench.ui.render.plain_case, workbench.ui.render.panes; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
