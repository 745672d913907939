"""The database of a state folder: opened safely, changed as a whole, shared by threads and processes."""

import mmap
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import no_shared_memory
from tests.stored import sql
from workbench.files.folders import state_dir
from workbench.store.database import opening
from workbench.store.database.database import Connection, Database, close_databases, database
from workbench.store.database.opening import DamagedError, is_on_network, open_to_read, open_to_write
from workbench.store.database.values import get_or_set_value, get_value, set_value


def put(connection: Connection) -> None:
    set_value(connection, "a", "1")


def get(connection: Connection) -> str | None:
    return get_value(connection, "a")


def test_nothing_is_created_by_reading(tmp_path: Path) -> None:
    assert database(tmp_path / "none").read(get) is None
    assert list(tmp_path.iterdir()) == []


def _blocked(folder: Path) -> Database:
    """Return a database that keeps everything in memory, because a file is in place of its folder."""
    (folder / "file").write_text("")
    stored = database(folder / "file" / "state")
    with pytest.raises(OSError, match="Not a directory") as failed:
        stored.write(put)
    assert stored.is_lasting
    assert not stored.exists
    assert stored.switch_to_memory(failed.value)
    return stored


def test_threads_share_one_database_in_memory(tmp_path: Path) -> None:
    stored = _blocked(tmp_path)

    def add(number: int) -> None:
        for _ in range(50):
            stored.write(partial(set_value, name=f"{number}", value="1"))
            assert stored.read(partial(get_value, name=f"{number}")) == "1"

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored.read(lambda connection: connection.execute("SELECT count(*) FROM meta").fetchone()) == (8,)
    close_databases()
    for number in range(20):
        database(tmp_path / str(number))
    assert database(tmp_path / "file" / "state") is stored, "it cannot be opened again"


def test_database_in_memory_has_what_was_readable(tmp_path: Path) -> None:
    database(tmp_path).write(put)
    close_databases()
    (tmp_path / "runs.db").chmod(0o400)
    stored = database(tmp_path)
    assert not stored.switch_to_memory(OSError(28, "a full disk may have room later"))
    assert stored.switch_to_memory(PermissionError(13, "Permission denied"))
    stored.write(lambda connection: set_value(connection, "b", "2"))
    assert stored.read(get) == "1"
    assert stored.why_in_memory == "Permission denied"
    assert sql(tmp_path, "SELECT name FROM meta") == [("a",)]
    assert stored.version() > 0


@pytest.mark.parametrize("statement", ["SELECT * FROM lost", "this is not SQL"])
def test_failed_read_of_a_database_in_memory_is_an_os_error(tmp_path: Path, statement: str) -> None:
    stored = database(tmp_path / "none")
    assert stored.switch_to_memory(PermissionError(13, "Permission denied"))
    with pytest.raises(OSError, match=r"runs\.db"):
        stored.read(lambda connection: connection.execute(statement))


def test_untrusted_folders_do_not_share_a_database(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".workbench/runs").mkdir(parents=True)
    one, two = (database(state_dir(tmp_path / name)) for name in ("one", "two"))
    one.write(put)
    assert (one.read(get), two.read(get)) == ("1", None)


def test_every_connection_refuses_unsafe_functions_and_uses_a_write_ahead_log(tmp_path: Path) -> None:
    for opened in (open_to_write(tmp_path / "runs.db"), open_to_read(tmp_path / "runs.db")):
        with closing(opened.connection) as connection:
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_function_that_the_schema_names_is_not_run(tmp_path: Path) -> None:
    database(tmp_path).write(put)
    sql(tmp_path, "CREATE VIEW evil AS SELECT load_extension('evil')")
    with pytest.raises(OSError, match=r"unsafe|not authorized"):
        database(tmp_path).read(lambda connection: connection.execute("SELECT * FROM evil").fetchall())


def test_failed_change_changes_nothing(tmp_path: Path) -> None:
    def fail(connection: Connection) -> None:
        put(connection)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        database(tmp_path).write(fail)
    assert database(tmp_path).read(get) is None


def test_read_sees_one_state_of_the_database(tmp_path: Path) -> None:
    database(tmp_path).write(put)

    def ask(connection: Connection) -> list[str | None]:
        before = get(connection)
        Database(tmp_path).write(lambda other: set_value(other, "a", "2"))
        return [before, get(connection)]

    assert database(tmp_path).read(ask) == ["1", "1"]
    assert database(tmp_path).read(get) == "2"


def test_changes_of_other_processes_change_the_version(tmp_path: Path) -> None:
    ours, theirs = Database(tmp_path), Database(tmp_path)
    assert ours.version() == 0
    theirs.write(put)
    first = ours.version()
    assert ours.version() == first
    ours.write(put)
    assert ours.version() == first, "only changes of others count"
    theirs.write(put)
    assert ours.version() != first


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_removed_or_replaced_file_is_noticed(tmp_path: Path, how: str) -> None:
    stored = Database(tmp_path)
    stored.write(put)
    assert stored.read(get) == "1"
    stored.version()
    for file in tmp_path.glob("runs.db*"):
        file.unlink()
    if how == "replaced":
        Database(tmp_path).write(lambda connection: set_value(connection, "a", "new"))
    assert stored.read(get) == ("new" if how == "replaced" else None)
    stored.write(lambda connection: set_value(connection, "b", "2"))
    assert stored.read(get) == ("new" if how == "replaced" else None)
    assert sql(tmp_path, "SELECT value FROM meta WHERE name = 'b'") == [("2",)]


def test_change_of_a_file_that_is_removed_meanwhile_fails(tmp_path: Path) -> None:
    stored = Database(tmp_path)
    stored.write(put)

    def change(connection: Connection) -> None:
        put(connection)
        (tmp_path / "runs.db").unlink()

    with pytest.raises(OSError, match=r".+"):
        stored.write(change)


def test_threads_share_the_database(tmp_path: Path) -> None:
    stored, found = Database(tmp_path), list[str | None]()
    stored.write(put)

    def work(number: int) -> None:
        for step in range(20):
            stored.write(partial(set_value, name=f"{number}-{step}", value="x"))
            found.append(stored.read(get))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["1"] * 80
    assert sql(tmp_path, "SELECT count(*) FROM meta") == [(81,)]


WRITER = """
import sys
from pathlib import Path
from workbench.store.database.database import database
from workbench.store.database.values import get_or_set_value, set_value
state, name = Path(sys.argv[1]), sys.argv[2]
for number in range(50):
    database(state).write(lambda connection: set_value(connection, f"{name}-{number}", "x"))
print(database(state).write(lambda connection: get_or_set_value(connection, "first", name)))
"""


def test_processes_lose_no_row_and_agree_on_the_first_value(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(tmp_path)]
    running = [subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True) for name in "abc"]
    said = {process.communicate(timeout=60)[0] for process in running}
    assert len(said) == 1
    assert sql(tmp_path, "SELECT count(*) FROM meta") == [(151,)]


def test_child_process_leaves_the_connections_of_its_parent_alone(tmp_path: Path) -> None:
    stored = database(tmp_path)
    stored.write(put)
    stored.read(get)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if database(tmp_path).read(get) == "1" and database(tmp_path).version() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stored.write(lambda connection: set_value(connection, "a", "2"))
    assert stored.read(get) == "2"


def test_write_ahead_log_is_not_used_on_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "is_on_network", lambda path: True)
    stored = Database(tmp_path)
    stored.write(put)
    assert stored.read(get) == "1"
    assert not (tmp_path / "runs.db-wal").exists()
    monkeypatch.undo()
    stored.close()
    stored.write(put)
    assert (tmp_path / "runs.db-wal").exists()
    monkeypatch.setattr(opening, "is_on_network", lambda path: True)
    stored.close()
    stored.write(put)
    assert not (tmp_path / "runs.db-wal").exists(), "it is given up where it is not safe"


@pytest.mark.skipif(not no_shared_memory.is_possible(), reason="it needs a filter of system calls")
def test_database_is_read_and_written_without_shared_memory(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from benchmarks.no_shared_memory import forbid_shared_memory
from tests.store.database.test_database import Database, get, put
forbid_shared_memory()
stored = Database(Path(sys.argv[1]))
before = stored.read(get)
stored.write(put)
stored.close()
print(before, stored.read(get), Path(sys.argv[1], "runs.db-wal").exists())
"""

    def without() -> str:
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False, text=True)
        return done.stdout + done.stderr

    assert without() == "None 1 False\n"
    database(tmp_path).write(lambda connection: set_value(connection, "a", "2"))
    assert (tmp_path / "runs.db-wal").exists()
    close_databases()
    assert without() == "2 1 False\n"


def test_write_ahead_log_is_switched_off_where_files_cannot_be_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(19, "no such device")

    monkeypatch.setattr(mmap, "mmap", fail)
    stored = Database(tmp_path)
    stored.write(put)
    assert stored.read(get) == "1"
    assert sql(tmp_path, "PRAGMA journal_mode") == [("delete",)]


@pytest.mark.parametrize(
    ("path", "wanted"), [("/mnt/share/a/runs.db", True), ("/mnt/my disk/runs.db", False), ("/home/runs.db", False)]
)
def test_network_file_systems_are_known_by_their_mount(
    monkeypatch: pytest.MonkeyPatch, path: str, wanted: bool
) -> None:
    mounts = (
        "22 1 0:21 / / rw - ext4 /dev/sda rw\n30 22 0:30 / /mnt rw - ext4 /dev/sdb rw\nodd\n"
        "31 22 0:31 / /mnt/share rw,relatime shared:1 - nfs4 server:/x rw\n"
        "32 22 0:32 / /mnt/my\\040disk rw - ext4 x rw\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: mounts)
    assert is_on_network(Path(path)) is wanted


def test_too_old_sqlite_is_refused_with_both_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 30, 0))
    with pytest.raises(OSError, match=r"too old: agent-workbench needs 3\.31\.0"):
        Database(tmp_path).write(put)


def test_full_disk_is_named_as_such(tmp_path: Path) -> None:
    stored = Database(tmp_path)
    stored.write(put)

    def fill(connection: Connection) -> None:
        connection.execute("PRAGMA max_page_count=40")
        set_value(connection, "large", "x" * 1_000_000)

    with pytest.raises(OSError, match="no space left") as full:
        stored.write(fill)
    assert full.value.errno == 28
    assert full.value.filename == str(tmp_path / "runs.db")
    assert stored.read(get) == "1"
    stored.write(lambda connection: set_value(connection, "large", "x" * 1_000_000))


def test_another_program_that_writes_for_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_WAIT", 0.01)
    Database(tmp_path).write(put)
    with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="another program is writing it"):
            Database(tmp_path).write(put)
        assert Database(tmp_path).read(get) == "1", "reading does not wait"


def test_write_ahead_log_of_a_killed_program_is_never_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database(tmp_path).write(put)
    close_databases()
    (tmp_path / "runs.db-wal").write_bytes(b"changes")
    monkeypatch.setattr(os, "access", lambda *_: False)
    connect = sqlite3.connect

    def fail(name: str, *more: Any, **options: Any) -> sqlite3.Connection:
        if "immutable" not in name:
            raise sqlite3.OperationalError("unable to open database file")
        opened: sqlite3.Connection = connect(name, *more, **options)
        return opened

    monkeypatch.setattr(sqlite3, "connect", fail)
    with pytest.raises(OSError, match="unable to open"):
        open_to_read(tmp_path / "runs.db")
    (tmp_path / "runs.db-wal").write_bytes(b"")
    open_to_read(tmp_path / "runs.db").close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_read(tmp_path: Path) -> None:
    Database(tmp_path).write(put)
    close_databases()
    (tmp_path / "runs.db").chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert Database(tmp_path).read(get) == "1"
        with pytest.raises(OSError, match=r".+"):
            Database(tmp_path).write(put)
    finally:
        tmp_path.chmod(0o700)


def test_link_is_never_followed(tmp_path: Path) -> None:
    other, state = tmp_path / "other", tmp_path / "state"
    Database(other).write(put)
    state.mkdir()
    (state / "runs.db").symlink_to(other / "runs.db")
    with pytest.raises(DamagedError, match="a link"):
        open_to_read(state / "runs.db")
    stored = Database(state)
    assert stored.read(get) is None
    stored.write(lambda connection: set_value(connection, "a", "2"))
    assert Database(other).read(get) == "1"
    assert not (state / "runs.db").is_symlink()


def test_first_value_of_a_name_is_kept(tmp_path: Path) -> None:
    stored = Database(tmp_path)
    assert [stored.write(lambda connection: get_or_set_value(connection, "x", name)) for name in "ab"] == ["a", "a"]  # noqa: B023
