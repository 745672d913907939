"""A run as one HTML page that needs nothing else: no script, no network, and text of agents is only text.

Each case is what the terminal shows of it, lines and styles alike; those that did not pass are open.
"""

from collections.abc import Iterator
from html import escape

from workbench.cli.explain import reasons
from workbench.cli.lines import label
from workbench.cli.repeat_lines import by_need, repeats_of
from workbench.cli.summary import count_text
from workbench.repeats.wording import cells
from workbench.store import CaseRecord, Store
from workbench.text import one_line
from workbench.ui.render.lines import Line
from workbench.ui.render.plain_case import case_lines

_WIDTH = 110
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_OPEN_AT_MOST = 50
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --muted: #59636e; --line: #d1d9e0; --good: #1a7f37;
  --bad: #c11c28; --odd: #8a5a00; --info: #0958c8; --panel: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --muted: #9198a1; --line: #3d444d;
  --good: #3fb950; --bad: #ff7b72; --odd: #d8a030; --info: #6cb0ff; --panel: #151b23; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; } p { margin: .2rem 0; color: var(--muted); overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; background: var(--panel); }
summary { padding: .45rem .8rem; cursor: pointer; overflow-wrap: anywhere; } summary b { font-weight: 600; }
summary i { font-style: normal; color: var(--muted); margin-left: .6rem; }
pre { margin: 0; padding: .7rem .8rem; overflow-x: auto; border-top: 1px solid var(--line); background: var(--paper);
  font: 13px/1.45 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; border-radius: 0 0 6px 6px; }
.heading, .strong, [class$="-strong"] { font-weight: 600; }
.muted, .hint, .rule, .fold, .label { color: var(--muted); } .name { color: var(--info); }
[class^="status-passed"] { color: var(--good); }
[class^="status-failed"], .diff-missing, .notice-error { color: var(--bad); }
.diff-extra { color: var(--good); } [class^="status-error"], .diff-moved, .notice-warning { color: var(--odd); }
[class^="status-not-evaluated"] { color: var(--odd); }
@media print { details { break-inside: avoid; } }
"""


def build_html(store: Store) -> bytes:
    """The newest run as a page, UTF-8."""
    return "".join(_page(store)).encode("utf-8", "replace")


def _page(store: Store) -> Iterator[str]:
    run = store.run
    title = _text(count_text(store))
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><main><h1>{title}</h1>\n"
    yield f"<p>Run {_text(run.run_id)}, {_text(run.started)}, in {_text(run.root)}</p>\n"
    if run.scored_from:
        yield f"<p>Scored from {_text(run.scored_from)}: no agent ran</p>\n"
    for notice in store.notices:
        yield f'<p class="notice-{_name(notice.level)}">{_text(notice.message)}</p>\n'
    records = list(store.current_records())
    yield from _criteria(records)
    yield from _repeats(store)
    # What needs reading stands first.
    order = {"failed": 0, "error": 0, "not_evaluated": 1, "passed": 2}
    opened = 0
    for record in sorted(records, key=lambda record: order.get(record.state, 0)):
        is_open = record.state != "passed" and opened < _OPEN_AT_MOST
        opened += is_open
        yield from _case(record, is_open=is_open)
    yield "</main></body></html>\n"


def _criteria(records: list[CaseRecord]) -> Iterator[str]:
    """How often each criterion passed, and its mean score."""
    scores: dict[str, list[float]] = {}
    verdicts: dict[str, list[str]] = {}
    for record in records:
        for result in record.metrics.values():
            if result.status in ("passed", "failed", "error", "not_evaluated"):
                verdicts.setdefault(result.name, []).append(result.status)
                if result.score is not None:
                    scores.setdefault(result.name, []).append(result.score)
    if not verdicts:
        return
    yield "<table><thead><tr><th>criterion<th>passed<th>failed<th>no verdict<th>mean score</tr></thead><tbody>\n"
    for name, found in verdicts.items():
        passed, failed = found.count("passed"), found.count("failed")
        given = scores.get(name)
        mean = f"{sum(given) / len(given):.3f}" if given else ""
        cells = f"<td>{passed}<td>{failed}<td>{len(found) - passed - failed}<td>{mean}"
        yield f"<tr><td>{_text(name)}{cells}</tr>\n"
    yield "</tbody></table>\n"


def _repeats(store: Store) -> Iterator[str]:
    """How often each case passed, where any was executed more than once."""
    cases = sorted(repeats_of(store), key=by_need)
    if not cases:
        return
    yield "<table><thead><tr><th>repeats of<th>passed<th>rate (95 %)<th>pass^k<th>varies<th></tr></thead><tbody>\n"
    for case in cases:
        passed, rate, hat, mark, more = cells(case)
        style = "status-not-evaluated" if case.flaky else ""
        marked = f'<b class="{style}">{_text(mark)}</b>' if style else _text(mark)
        told = f"<td>{_text(passed)}<td>{_text(rate)}<td>{_text(hat)}<td>{marked}<td>{_text(more)}"
        yield f"<tr><td>{_text(label(case.ref))}{told}</tr>\n"
    yield "</tbody></table>\n"


def _case(record: CaseRecord, *, is_open: bool) -> Iterator[str]:
    state = record.state if record.finished else "error"
    why = "" if state == "passed" else "; ".join(reasons(record))
    yield f"<details{' open' if is_open else ''}><summary>"
    style = _name(state.replace("_", "-"))
    yield f'<b class="status-{style}">{_text(state.replace("_", " "))}</b> {_text(label(record.ref))}'
    yield f"<i>{_text(why)}</i></summary><pre>"
    for line in case_lines(record, _WIDTH):
        yield _line(line) + "\n"
    yield "</pre></details>\n"


def _line(line: Line) -> str:
    """The segments are safe for a terminal already; here they become safe for a page."""
    return "".join(
        f'<span class="{_name(segment.style)}">{_body(segment.text)}</span>' if segment.style else _body(segment.text)
        for segment in line
    ).rstrip()


def _text(text: str) -> str:
    return _body(one_line(text, limit=1000))


def _body(text: str) -> str:
    return escape(text, quote=True)


def _name(style: str) -> str:
    return escape(" ".join(style.replace(".", " ").split()), quote=True)
