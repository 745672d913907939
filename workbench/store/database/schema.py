"""The schema of `runs.db`. It is documented for users in `docs/run-storage.md`."""

APPLICATION_ID = 0x61775242
"""Marks a file as ours, in its header (`awRB`)."""
VERSION = 1
"""Version of the schema, as `PRAGMA user_version`."""
OLDEST_SQLITE = (3, 31, 0)
"""The oldest SQLite that works: it can refuse functions in the schema that are not safe (`trusted_schema`)."""
PAGE_SIZE = 8192
"""Bytes of a page. Smaller pages leave more room unused behind long rows."""
RUN_BITS = 24
"""An execution's id is its run's id, shifted by so many bits, plus its number in the run."""
EVENT_BITS = 32
"""The same for events and pieces."""
TABLES = {
    "meta": """CREATE TABLE meta (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID""",
    "run": """CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL,
        started TEXT NOT NULL,
        seconds REAL,
        interrupted INTEGER NOT NULL,
        scored_from TEXT NOT NULL,
        git_commit TEXT,
        dirty INTEGER,
        events INTEGER NOT NULL,
        executions INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        listed TEXT,
        crc INTEGER NOT NULL,
        writer TEXT,
        seen REAL,
        deleted INTEGER NOT NULL DEFAULT 0,
        facts TEXT NOT NULL DEFAULT '{}',
        facts_crc INTEGER NOT NULL DEFAULT 0
    )""",
    "execution": """CREATE TABLE execution (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        agent TEXT NOT NULL,
        evalset_file TEXT NOT NULL,
        eval_set_id TEXT NOT NULL,
        eval_id TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        status TEXT,
        error_kind TEXT,
        error TEXT,
        cause TEXT,
        seconds REAL NOT NULL,
        model_calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        judge_calls INTEGER NOT NULL,
        judge_calls_cached INTEGER NOT NULL,
        scores TEXT NOT NULL,
        more TEXT NOT NULL,
        first INTEGER NOT NULL,
        events INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "event": """CREATE TABLE event (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        execution INTEGER,
        name TEXT NOT NULL,
        data TEXT NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "input": """CREATE TABLE input (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        data TEXT NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "piece": """CREATE TABLE piece (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        data TEXT NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "content": """CREATE TABLE content (
        digest TEXT PRIMARY KEY,
        data BLOB NOT NULL,
        used REAL NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "judge_answer": """CREATE TABLE judge_answer (
        key TEXT PRIMARY KEY,
        answer TEXT NOT NULL,
        stored REAL NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "model_answer": """CREATE TABLE model_answer (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        answer TEXT NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "owner": """CREATE TABLE owner (
        evalset TEXT PRIMARY KEY,
        chosen TEXT,
        agent TEXT,
        app_name TEXT,
        crc INTEGER NOT NULL
    )""",
    "edit": """CREATE TABLE edit (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL,
        edit TEXT NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "file_digest": """CREATE TABLE file_digest (
        path TEXT NOT NULL,
        kind TEXT NOT NULL,
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        digest TEXT NOT NULL,
        used REAL NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (path, kind)
    )""",
}
"""The tables by name."""
INDEXES = (
    "CREATE INDEX run_by_name ON run (run_id)",
    "CREATE INDEX execution_by_case ON execution (evalset_file, eval_id)",
    "CREATE INDEX event_by_execution ON event (execution)",
    "CREATE INDEX model_answer_by_run ON model_answer (run)",
)
"""The indexes."""
