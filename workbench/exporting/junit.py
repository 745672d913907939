"""Export of a run as JUnit XML, with a suite per evalset and a test case per execution.

Failed cases have `<failure>`, errors `<error>`, and cases that were not evaluated or were cancelled `<skipped>`. The
message is one line. The body is the whole case with all verdicts.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree as Tree

from workbench.exporting.exporter import Exporter
from workbench.exporting.report import OUTPUT_LIMIT
from workbench.results.explain import criteria_and_source, matched_by_location, other_criteria, reasons
from workbench.results.faces import BY_FUNCTION
from workbench.results.faults import by_function as fault_by_function
from workbench.results.faults import fault_title, handling_text
from workbench.results.frozen import FROZEN, drift_texts, frozen_words
from workbench.results.judged import is_function
from workbench.results.machines import lost_words, placed_words
from workbench.results.panes import plain_case
from workbench.results.repeat_texts import sentence
from workbench.results.repeats import summarize_all
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.store import RunSummary, Store
from workbench.text.safe_text import one_line, plain

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids even if escaped. A single one makes the whole file invalid."""
_TAGS = {"failed": "failure", "not_evaluated": "skipped", "cancelled": "skipped"}


def junit_pieces(store: Store) -> Iterator[bytes]:
    """Yield the newest run as JUnit XML in UTF-8, case by case to save memory."""
    suites: dict[tuple[str, str], list[Execution]] = {}
    for record in store.current_records():
        suites.setdefault((record.ref.agent, record.ref.evalset_file), []).append(record)
    root = Tree.Element("testsuites", {"name": "agent-workbench", **_figures(store.current_records())})
    root.set("time", _seconds(store.run.duration_seconds))
    yield b"<?xml version='1.0' encoding='utf-8'?>\n"
    yield from _around(root, 0, (piece for records in suites.values() for piece in _suite(records, store.run)))


def refusal_pieces(message: str, kind: str) -> Iterator[bytes]:
    """Yield the file of a run that was refused. It has one test, with the message as its error."""
    figures = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": _seconds(0.0)}
    root = Tree.Element("testsuites", {"name": "agent-workbench", **figures})
    suite = Tree.SubElement(root, "testsuite", {"name": "agent-workbench", **figures})
    case = Tree.SubElement(suite, "testcase", {"classname": "agent-workbench", "name": "nothing ran"})
    Tree.SubElement(case, "error", {"type": kind, "message": _line(message)}).text = _block(message)
    yield b"<?xml version='1.0' encoding='utf-8'?>\n"
    yield _piece(root, 0)


def _suite(records: list[Execution], run: RunSummary) -> Iterator[bytes]:
    ref = records[0].ref
    suite = Tree.Element("testsuite", {"name": _line(f"{ref.agent or '?'}/{ref.eval_set_id or ref.evalset_file}")})
    suite.attrib.update(_figures(records))
    suite.set("time", _seconds(sum(record.duration_seconds for record in records)))
    # The schema requires a time without a zone. By convention it is UTC.
    suite.set("timestamp", _line(run.started.removesuffix("Z")))
    suite.set("file", _line(ref.evalset_file))
    known = next((one for one in map(read_details, records) if one.criteria), read_details(records[0]))
    properties = Tree.Element("properties")
    Tree.SubElement(properties, "property", {"name": "criteria", "value": _line(criteria_and_source(known))})
    for note in matched_by_location(records):
        Tree.SubElement(properties, "property", {"name": "agent", "value": _line(note)})
    for case in summarize_all(records, run.until_sure):
        repeats = {"name": _line(f"repeats of {case.ref.eval_id}"), "value": _line(sentence(case))}
        Tree.SubElement(properties, "property", repeats)
    parts = itertools.chain((properties,), map(_case, map(read_details, records)))
    yield from _around(suite, 1, (_piece(part, 2) for part in parts))


def _around(element: Tree.Element, level: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield an XML element whose content is the pieces."""
    end = f"</{element.tag}>"
    indent = "  " * level
    begin = Tree.tostring(element, encoding="unicode", short_empty_elements=False).removesuffix(end)
    yield f"{indent}{begin}\n".encode()
    yield from pieces
    yield f"{indent}{end}\n".encode()


def _piece(element: Tree.Element, level: int) -> bytes:
    Tree.indent(element, level=level)
    return f"{'  ' * level}{Tree.tostring(element, encoding='unicode')}\n".encode()


def _case(record: CaseRecord) -> Tree.Element:
    ref = record.ref
    repeat = f" [{fault_title(record.planned)}]" if record.planned.fault else f"#{ref.repeat}" if ref.repeat > 1 else ""
    by_function = [name for name, result in record.metrics.items() if is_function(result)]
    if record.handling is not None and fault_by_function(record.handling):
        by_function.append("tool fault")
    values = _properties(record, by_function)
    marks = [mark for name, mark in (("judged_by", BY_FUNCTION.word), ("frozen", FROZEN)) if values[name]]
    case = Tree.Element(
        "testcase",
        {
            "classname": _line(f"{ref.agent or '?'}.{ref.eval_set_id or ref.evalset_file}"),
            "name": _line(f"{ref.eval_id or ref.evalset_file}{repeat}{''.join(f' ({mark})' for mark in marks)}"),
            "time": _seconds(record.duration_seconds),
            "file": _line(ref.evalset_file),
        },
    )
    if any(values.values()):
        properties = Tree.SubElement(case, "properties")
        for name, value in values.items():
            if value:
                Tree.SubElement(properties, "property", {"name": name, "value": _line(value)})
    if record.state != "passed":
        why = "; ".join(reasons(record)) or "no criterion applied"
        verdict = Tree.SubElement(case, _TAGS.get(record.state, "error"), {"message": _line(why)})
        verdict.set("type", record.broken_by.kind if record.broken_by else record.state)
        verdict.text = _block("\n".join([*reasons(record), "", *plain_case(record, 100)]))
    for stream, tag in (("stdout", "system-out"), ("stderr", "system-err")):
        if record.output.get(stream):
            Tree.SubElement(case, tag).text = _block(record.output[stream][-OUTPUT_LIMIT:])
    return case


def _properties(record: CaseRecord, by_function: list[str]) -> dict[str, str]:
    """Return the properties of a case. Properties that do not apply are ""."""
    return {
        "criteria_changed": other_criteria(record),
        "frozen": "" if record.frozen is None else frozen_words(record.frozen),
        "drift": "; ".join(drift_texts(record.thawed)),
        "place": placed_words(record),
        "lost_attempts": "; ".join(map(lost_words, record.lost)),
        "tool_fault": "" if record.handling is None else handling_text(record.handling),
        "judged_by": f"function: {', '.join(by_function)}" if by_function else "",
    }


def _figures(records: Iterable[Execution]) -> dict[str, str]:
    counts = Counter(_TAGS.get(record.state, record.state) for record in records)
    decided = {tag: counts[tag] for tag in ("passed", "failure", "skipped")}
    return {
        "tests": str(counts.total()),
        "failures": str(decided["failure"]),
        "errors": str(counts.total() - sum(decided.values())),
        "skipped": str(decided["skipped"]),
    }


def _line(text: str) -> str:
    return _NOT_XML.sub("\ufffd", one_line(text, limit=1000))


def _block(text: str) -> str:
    return _NOT_XML.sub("\ufffd", plain(text))


def _seconds(value: float) -> str:
    return f"{value:.3f}"


EXPORTER: Final = Exporter("junit", "JUnit XML", ".xml", lambda run: junit_pieces(run.store))
