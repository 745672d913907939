"""The files that an agent reads: imports, prompts and data of the project, and nothing else."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.worker.conftest import MakeAgent, needs_fork

SOURCE = """
    import json
    from pathlib import Path
    from . import prompts

    HERE = Path(__file__).parent
    START = (HERE / "start.txt").read_text()
    (HERE / "begun.txt").write_text("")

    def root_agent(message, session):
        (HERE / "log.txt").open("a").write(message)
        (HERE / "draft").write_text(message)
        (HERE / "draft").replace(HERE / "notes.txt")
        (HERE / "log.txt").read_text()
        open(HERE / "data" / "later.json").close()
        json.dumps({})
        return START
"""
FILES = {"__init__.py": "", "prompts.py": "HI = 1", "start.txt": "hi", "data/later.json": "{}", "unread.txt": ""}


@needs_fork
def test_read_files_are_reported(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(SOURCE, files=FILES)
    folder = tmp_path / "desk"
    imported = [Path(file).relative_to(folder).as_posix() for file in agent.imported["files"]]
    assert imported == ["__init__.py", "agent.py", "prompts.py", "start.txt"]
    case = agent.run("hello")
    touched = case.of("Touched")
    assert [Path(file).relative_to(folder).as_posix() for event in touched for file in event["files"]] == [
        "data/later.json"
    ]
    written = [Path(file).name for event in case.of("Wrote") for file in event["files"]]
    assert written == ["log.txt", "draft", "notes.txt"]
    assert agent.wrote == [str(folder / "begun.txt")]


@needs_fork
@pytest.mark.parametrize("end", ["raise LookupError('lost')", "raise SystemExit(3)"])
def test_failing_case_reports_its_reads(make_agent: MakeAgent, tmp_path: Path, end: str) -> None:
    source = f"""
        from pathlib import Path

        def root_agent(message, session):
            (Path(__file__).parent / "data/later.json").read_text()
            {end}
    """
    case = make_agent(source, files=FILES).run("hello")
    assert [event["files"] for event in case.of("Touched")] == [[str(tmp_path / "desk/data/later.json")]]
    assert case.of("Failed")


@needs_fork
def test_listed_folder_is_reported_unless_searched_for_modules(make_agent: MakeAgent, tmp_path: Path) -> None:
    source = """
        import os
        from . import prompts

        def root_agent(message, session):
            os.chdir(os.path.dirname(__file__))
            return ", ".join(sorted(os.listdir("data" if message == "hello" else None)))
    """
    agent = make_agent(source, files=FILES)
    assert agent.imported["folders"] == []
    for message, name in {"hello": "desk/data", "here": "desk"}.items():
        listed = [folder for event in agent.run(message).of("Touched") for folder in event["folders"]]
        assert listed == [str(tmp_path / name)]


@needs_fork
def test_user_module_outside_the_project_is_reported_but_not_libraries_or_data(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}_elsewhere"
    for name, text in {"tone.py": "from wsgiref import util", "site-packages/lib.py": "", "data.txt": ""}.items():
        (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere / name).write_text(text, encoding="utf-8")
    source = f"""
        import sys
        sys.path[:0] = [{str(elsewhere)!r}, {str(elsewhere / "site-packages")!r}]
        import lib, tone
        open({str(elsewhere / "data.txt")!r}).close()

        def root_agent(message, session):
            return "hi"
    """
    imported = make_agent(source, files={"__init__.py": ""}).imported["files"]
    assert [file for file in imported if not file.startswith(str(tmp_path / "desk"))] == [str(elsewhere / "tone.py")]


DATABASES = """
    import os, socket, sqlite3, subprocess, sys
    from pathlib import Path

    HERE = Path(__file__).parent

    def root_agent(message, session):
        if message in ("rows.db", "log.db"):
            database = sqlite3.connect(HERE / message)
            database.execute("select * from t" if message == "rows.db" else "insert into t values (1)")
            database.commit()
        elif message == "uri":
            sqlite3.connect(f"file:{HERE}/rows.db?mode=ro", uri=True).execute("select * from t")
        elif message == "memory":
            sqlite3.connect(":memory:")
        elif message == "program":
            subprocess.run([sys.executable, "-c", ""])
        elif message == "fork":
            if not os.fork():
                os._exit(0)
            os.wait()
        elif message == "connect":
            with socket.socket() as one:
                one.connect_ex(("127.0.0.1", 9))
        elif message == "model":
            try:
                socket.getaddrinfo("api.openai.com", None, flags=socket.AI_NUMERICHOST)
            except OSError:
                pass
        elif message == "elsewhere":
            (HERE.parent.parent / "elsewhere.txt").read_text()
        elif message == "counter":
            counter = HERE / "counter.txt"
            counter.write_text(counter.read_text() + "1")
        return message
"""


@needs_fork
def test_database_is_read_until_it_changes(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(DATABASES, files={})
    for name in ("rows.db", "log.db"):
        with contextlib.closing(sqlite3.connect(tmp_path / "desk" / name)) as database:
            database.execute("create table t (v)")
    read = {
        message: [Path(file).name for event in agent.run(message).of("Touched") for file in event["files"]]
        for message in ("rows.db", "uri", "memory", "log.db")
    }
    assert read == {
        "rows.db": ["rows.db", "rows.db-wal"],
        "uri": ["rows.db", "rows.db-wal"],
        "memory": [],
        "log.db": [],
    }


@needs_fork
@pytest.mark.parametrize(
    ("message", "unseen"),
    [
        ("rows.db", []),
        ("log.db", ["files it changes"]),
        ("memory", ["databases"]),
        ("counter", ["files it changes"]),
        ("program", ["child programs"]),
        ("fork", ["forked processes"]),
        ("connect", ["sockets"]),
        ("model", []),
        ("elsewhere", ["outside files"]),
    ],
)
def test_reads_that_cannot_be_traced_are_named(
    make_agent: MakeAgent, tmp_path: Path, message: str, unseen: list[str]
) -> None:
    agent = make_agent(DATABASES, files={"counter.txt": ""})
    (tmp_path.parent / "elsewhere.txt").write_text("")
    (tmp_path / "elsewhere.txt").write_text("")
    for name in ("rows.db", "log.db"):
        with contextlib.closing(sqlite3.connect(tmp_path / "desk" / name)) as database:
            database.execute("create table t (v)")
    assert [event["unseen"] for event in agent.run(message).of("Touched")] == [unseen]
