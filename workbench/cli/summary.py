"""What is said when a run is over: what went wrong and why, which criteria applied and why, and the counts."""

from collections.abc import Iterable, Iterator

from workbench.cli.explain import reasons
from workbench.cli.lines import label
from workbench.store import CaseRecord, CaseState, Store
from workbench.text import one_line

_SECTIONS: tuple[tuple[CaseState, str], ...] = (
    ("error", "Errors"),
    ("failed", "Failures"),
    ("not_evaluated", "Not evaluated"),
)
_WORDS: tuple[tuple[CaseState, str], ...] = (
    ("passed", "passed"),
    ("failed", "failed"),
    ("error", "error"),
    ("not_evaluated", "not evaluated"),
    ("running", "broken off"),
    ("queued", "not started"),
)
_FILES_NAMED = 5


def summary_lines(store: Store) -> Iterator[str]:
    """The whole summary, safe for a terminal, line by line."""
    records = list(store.current_records())
    for state, title in _SECTIONS:
        found = [record for record in records if record.state == state]
        if found:
            yield ""
            yield f"{title}:"
            for record in found:
                yield from _problem(record)
    yield ""
    yield from _criteria(records)
    yield count_line(store)


def count_line(store: Store) -> str:
    """`12 cases in 4.2 s: 9 passed, 2 failed, 1 error`."""
    counts = store.counts()
    total = counts.total()
    parts = [f"{counts[state]} {word}" for state, word in _WORDS if counts[state]]
    parts = [part if part == "1 error" else part.replace(" error", " errors") for part in parts]
    interrupted = "interrupted, " if store.run.interrupted else ""
    cases = "1 case" if total == 1 else f"{total} cases"
    return f"{interrupted}{cases} in {store.run.duration_seconds:.1f} s: {', '.join(parts) or 'nothing ran'}"


def _problem(record: CaseRecord) -> Iterator[str]:
    yield f"  {label(record.ref)}"
    for reason in reasons(record) or ["no criterion has anything to judge here"]:
        yield f"    {reason}"


def _criteria(records: Iterable[CaseRecord]) -> Iterator[str]:
    """Which criteria applied to which evalsets, and why those; evalsets with the same answer share a line."""
    files: dict[str, dict[str, None]] = {}
    for record in records:
        files.setdefault(record.planned.criteria_source, {})[record.ref.evalset_file] = None
    if files:
        yield "Criteria:"
    for source, names in files.items():
        named = [one_line(name) for name in list(names)[:_FILES_NAMED]]
        more = f" and {len(names) - _FILES_NAMED} more" if len(names) > _FILES_NAMED else ""
        yield f"  {one_line(source, limit=1000)} ({', '.join(named)}{more})"
