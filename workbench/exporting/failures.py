"""Failures with their evidence as Markdown, for an issue or a coding agent."""

from collections.abc import Iterator, Sequence

from workbench.exporting.tables import code_span, evidence_block
from workbench.results.cause_lines import cause_text
from workbench.results.plain_lines import case_label
from workbench.store.cause import Cause
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted

_MAX_NAMES = 50
"""Cases of one cause that are listed by name."""
_MAX_CHARACTERS = 60_000
"""GitHub accepts issues of up to 65,536 characters."""


def failures_as_markdown(failures: Sequence[tuple[Cause | None, CaseRecord, str]]) -> str:
    """Return failures by cause. Each is its cause (None: it passes now), its record, and the user's note.

    Each cause has its evidence once, from its first case. The text stays below the limit of an issue.
    """
    causes: dict[str, tuple[Cause | None, list[tuple[CaseRecord, str]]]] = {}
    for cause, record, note in failures:
        causes.setdefault("" if cause is None else cause.slug, (cause, []))[1].append((record, note))
    parts = [f"## {counted(len(failures), 'case')} in which the agent is wrong\n"]
    size = len(parts[0])
    for number, (cause, of_cause) in enumerate(causes.values()):
        part = "\n".join(_cause(cause, of_cause)) + "\n"
        if size + len(part) > _MAX_CHARACTERS and number:
            parts.append(f"and {counted(len(causes) - number, 'more cause')}\n")
            break
        parts.append(part)
        size += len(part)
    return "\n".join(parts)


def _cause(cause: Cause | None, cases: Sequence[tuple[CaseRecord, str]]) -> Iterator[str]:
    first, _ = cases[0]
    yield f"### {code_span('now passing' if cause is None else cause_text(cause))}: {counted(len(cases), 'case')}"
    yield ""
    for record, note in cases[:_MAX_NAMES]:
        file = f" in {code_span(record.ref.evalset_file)}"
        yield f"- {code_span(case_label(record))}{file}{f': {code_span(note)}' if note else ''}"
    if len(cases) > _MAX_NAMES:
        yield f"- and {len(cases) - _MAX_NAMES:,} more"
    yield ""
    yield from evidence_block(first, full=True)
