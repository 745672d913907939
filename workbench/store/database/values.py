"""Database tables besides runs: file contents, answers, owners, edits, digests and single values.

All functions that take a connection are called within `Database.read` or `Database.write`. Rows whose checksum is wrong
count as missing.
"""

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.store.database.database import Connection
from workbench.store.database.opening import EVENT_BITS
from workbench.store.database.runs import checksum, plain, text_checksum


def _put(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Store rows with their checksums. They replace those with the same key."""
    places = ", ".join("?" * (len(columns) + 1))
    connection.executemany(
        f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}, crc) VALUES ({places})",
        [(*row, checksum(tuple(row))) for row in rows],
    )


def get_value(connection: Connection, name: str) -> str | None:
    """Return the value with a name, or None if there is none."""
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if found is None else str(found[0])


def set_value(connection: Connection, name: str, value: str | None) -> None:
    """Set the value `name`, or delete it if `value` is None."""
    if value is None:
        connection.execute("DELETE FROM meta WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (name, plain(value)))


def get_or_set_value(connection: Connection, name: str, value: str) -> str:
    """Return the value with a name. If there is none, set it to `value`. The first process wins."""
    connection.execute("INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)", (name, value))
    return get_value(connection, name) or value


def add_contents(connection: Connection, contents: Mapping[str, bytes], now: float) -> None:
    """Store file contents by digest. Contents that are stored already are marked as used now."""
    for digest, data in contents.items():
        used = connection.execute("UPDATE content SET used = ? WHERE digest = ?", (now, digest))
        if not used.rowcount:
            row = (digest, data, now, zlib.crc32(data))
            connection.execute("INSERT INTO content (digest, data, used, crc) VALUES (?, ?, ?, ?)", row)


def get_content(connection: Connection, digest: str) -> bytes | None:
    """Return the content with a digest, or None if it is missing or damaged."""
    found = connection.execute("SELECT data, crc FROM content WHERE digest = ?", (plain(digest),)).fetchone()
    return found[0] if found is not None and isinstance(found[0], bytes) and zlib.crc32(found[0]) == found[1] else None


def drop_contents(connection: Connection, used: Collection[str], before: float) -> int:
    """Delete contents that are not in `used` and were last used before a time. Return how many."""
    rows = connection.execute("SELECT digest FROM content WHERE used < ?", (before,)).fetchall()
    gone = [(digest,) for (digest,) in rows if digest not in used]
    connection.executemany("DELETE FROM content WHERE digest = ?", gone)
    return len(gone)


def add_pieces(connection: Connection, run: int, first: int, texts: Iterable[str]) -> None:
    """Store pieces of a run (requests and answers), from number `first` on."""
    base = run << EVENT_BITS
    rows = enumerate(map(plain, texts), first)
    connection.executemany(
        "INSERT INTO piece (id, run, data, crc) VALUES (?, ?, ?, ?)",
        [(base | number, run, text, zlib.crc32(text.encode())) for number, text in rows],
    )


def next_piece(connection: Connection, run: int) -> int:
    """Return the next free number for a piece of a run."""
    base = run << EVENT_BITS
    found = connection.execute(
        "SELECT max(id) FROM piece WHERE id BETWEEN ? AND ?", (base, ((run + 1) << EVENT_BITS) - 1)
    ).fetchone()
    return 0 if found[0] is None else int(found[0]) - base + 1


def get_piece(connection: Connection, run_id: str, number: int) -> str | None:
    """Return a piece of a run, or None if it is missing or damaged."""
    run = connection.execute("SELECT id FROM run WHERE run_id = ?", (plain(run_id),)).fetchone()
    if run is None or not 0 <= number < 1 << EVENT_BITS:
        return None
    key = run[0] << EVENT_BITS | number
    found = connection.execute("SELECT data, crc FROM piece WHERE id = ?", (key,)).fetchone()
    return str(found[0]) if found is not None and text_checksum(found[0]) == found[1] else None


class StoredAnswer(NamedTuple):
    """A judge's answer as JSON text, and the time when it was stored, in seconds since the epoch."""

    answer: str
    stored: float


def get_judge_answer(connection: Connection, key: str) -> StoredAnswer | None:
    """Return the answer of a judge, or None if it is missing or damaged."""
    found = connection.execute("SELECT key, answer, stored, crc FROM judge_answer WHERE key = ?", (key,)).fetchone()
    return StoredAnswer(*found[1:3]) if found is not None and checksum(found[:3]) == found[3] else None


def put_judge_answers(connection: Connection, answers: Mapping[str, str], now: float) -> None:
    """Store answers of judges by key."""
    rows = [(key, answer, now) for key, answer in answers.items()]
    _put(connection, "judge_answer", ("key", "answer", "stored"), rows)


def drop_judge_answer(connection: Connection, key: str) -> None:
    """Delete the answer of a judge."""
    connection.execute("DELETE FROM judge_answer WHERE key = ?", (key,))


def add_model_answers(connection: Connection, run: int, answers: Iterable[str]) -> None:
    """Store answers of models in a run, as JSON text."""
    connection.executemany(
        "INSERT INTO model_answer (run, answer, crc) VALUES (?, ?, ?)",
        [(run, answer, zlib.crc32(answer.encode())) for answer in answers],
    )


def model_answers(connection: Connection, run: int) -> list[str]:
    """Return the stored answers of models in a run, in order."""
    rows = connection.execute("SELECT answer, crc FROM model_answer WHERE run = ? ORDER BY id", (run,))
    return [text for text, crc in rows if text_checksum(text) == crc]


def drop_model_answers(connection: Connection, run: int) -> None:
    """Delete the stored answers of models in a run."""
    connection.execute("DELETE FROM model_answer WHERE run = ?", (run,))


def stored_name(text: str) -> str:
    """Return the stored form of a file name. A name that is not valid Unicode or begins with `"` becomes JSON."""
    return text if not text.startswith('"') and plain(text) == text else json.dumps(text)


def read_name(text: str) -> str:
    """Return the file name, given its stored form from `stored_name`."""
    return str(json.loads(text)) if text.startswith('"') else text


class OwnerRow(NamedTuple):
    """The owner of an evalset: the agent that the user chose, and the agent and `app_name` of the last run."""

    evalset: str
    chosen: str | None
    agent: str | None
    app_name: str | None


def owners(connection: Connection) -> tuple[list[OwnerRow], int]:
    """Return the stored owners, and the number of damaged ones."""
    rows = connection.execute("SELECT evalset, chosen, agent, app_name, crc FROM owner").fetchall()
    whole = [OwnerRow(*row[:4]) for row in rows if checksum(row[:4]) == row[4]]
    return whole, len(rows) - len(whole)


def put_owners(connection: Connection, rows: Iterable[OwnerRow]) -> None:
    """Store owners. They replace those of the same evalsets."""
    _put(connection, "owner", OwnerRow._fields, rows)


class EditRow(NamedTuple):
    """An edit as JSON text. `state` is `making`, `done` or `undone`."""

    id: int
    state: str
    edit: str


def edits(connection: Connection) -> tuple[list[EditRow], int | None]:
    """Return the stored edits in order, and the id of the last damaged one or None."""
    rows = connection.execute("SELECT id, state, edit, crc FROM edit ORDER BY id").fetchall()
    damaged = [row[0] for row in rows if checksum(row[:3]) != row[3]]
    return [EditRow(*row[:3]) for row in rows if checksum(row[:3]) == row[3]], max(damaged, default=None)


def newest_edit(connection: Connection) -> int:
    """Return the largest id of a stored edit, or 0."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM edit").fetchone()[0])


def put_edit(connection: Connection, row: EditRow) -> None:
    """Store an edit. It replaces the one with the same id."""
    _put(connection, "edit", EditRow._fields, [row])


def drop_edits(connection: Connection, ids: Iterable[int]) -> None:
    """Delete edits."""
    connection.executemany("DELETE FROM edit WHERE id = ?", [(each,) for each in ids])


class DigestRow(NamedTuple):
    """The digest of a file, and the file's status when it was taken. `kind` names its salt or purpose."""

    path: str
    kind: str
    size: int
    modified: int
    changed: int
    inode: int
    digest: str


def file_digests(connection: Connection, kind: str) -> list[DigestRow]:
    """Return the stored digests of files of a kind."""
    rows = connection.execute(
        "SELECT path, kind, size, modified, changed, inode, digest, crc FROM file_digest WHERE kind = ?", (kind,)
    ).fetchall()
    return [DigestRow(*row[:7]) for row in rows if checksum(row[:7]) == row[7]]


def put_file_digests(connection: Connection, rows: Iterable[DigestRow], now: float, most: int) -> None:
    """Store digests of files, and keep only the `most` most recently used ones."""
    connection.executemany(
        "INSERT OR REPLACE INTO file_digest (path, kind, size, modified, changed, inode, digest, used, crc)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row, now, checksum(tuple(row))) for row in rows],
    )
    connection.execute(
        "DELETE FROM file_digest WHERE rowid IN (SELECT rowid FROM file_digest ORDER BY used DESC LIMIT -1 OFFSET ?)",
        (most,),
    )
