"""What an agent read and wrote, noted case by case."""

from pathlib import Path

from workbench.freshness.agent_inputs import Touched


def test_written_files_do_not_count_as_read_and_their_folders_are_known() -> None:
    touched = Touched(files={Path("/p/in"), Path("/p/out/1")})
    touched.add_written({Path("/p/out/1")})
    touched.add_written({Path("/p/out/1"), Path("/p/log")})
    assert touched == Touched({Path("/p/in")}, set(), {Path("/p/out/1"), Path("/p/log")})
    assert touched.written_in == {Path("/p/out"), Path("/p")}
    assert (Touched() | touched).written_in == touched.written_in
