"""Labels of a stored run: time, agents, verdicts and flags. All texts are safe."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from workbench.results.faces import BY_FUNCTION, COUNTED, FACES, FROZEN, OTHER_CRITERIA, Status
from workbench.results.frozen import frozen_count
from workbench.results.plain_lines import commit_words
from workbench.store.execution import Execution
from workbench.store.history.summary import ListedRun, Summary
from workbench.text.counting import counted, counted_status, cut_to_tenths, few
from workbench.text.safe_text import one_line
from workbench.ui.session.relative_times import clock
from workbench.ui.tree.labels import Piece, label, style_of

_MINUTE, _HOUR = 60, 3600
_LISTED = 12
"""Maximum number of agents and of evalsets that are listed for a run."""
_LEAST_CHANGE = 1e-6
SHOWN: tuple[Status, ...] = (*COUNTED, "not_run")
"""Statuses that are counted. A killed run has unfinished cases, which neither failed nor ended in an error."""
_WORDS: dict[Status, str] = {"not_run": "unfinished"}


def state_of(run: Summary, execution: Execution) -> Status:
    """Return the status of an execution in its run, or `not_run` if neither has finished."""
    return "not_run" if run.seconds is None and not execution.finished else run.status_of(execution)


def ended_in(run: Summary, execution: Execution) -> Execution:
    """Return an execution with its status in the run.

    If its end is not stored, it is `cancelled` or, in a complete run, `error`.
    """
    return execution if execution.finished else replace(execution, state=run.status_of(execution))


def local_time(started: str) -> datetime | None:
    """Return an ISO 8601 time in the user's time zone, or None if it is unknown or invalid."""
    try:
        return datetime.fromisoformat(started).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def short_time(started: str, now: datetime) -> str:
    """Return a time in at most 12 cells, or "no date" if it is unknown.

    It is `just now`, `5 min ago`, `14:03`, `yest. 14:03`, `21 Nov 14:03` or `2025-11-21`.
    """
    time = local_time(started)
    if time is not None:
        ago = (now - time).total_seconds()
        if 0 <= ago < _MINUTE:
            return "just now"
        if 0 <= ago < _HOUR:
            return f"{int(ago // _MINUTE)} min ago"
        if time.date() == (now - timedelta(days=1)).date():
            return f"yest. {time:%H:%M}"
    return by_date(started, now, "%H:%M", "%-d %b %H:%M", "%Y-%m-%d")


def ran_words(started: str, now: datetime) -> tuple[str, str]:
    """Return a long and a short text: `ran 14:02, 2 min ago` and `2 min ago`. After an hour, both are `ran 14:02`."""
    short, time = short_time(started, now), local_time(started)
    if time is not None and short.endswith(("ago", "now")):
        return f"ran {time:%H:%M}, {short}", short
    return f"ran {short}", f"ran {short}"


def no_runs_text(state: Path) -> str:
    """Return a text for an empty list of runs: how to store one, or that the state folder is not writable."""
    place = next(path for path in (state, *state.parents) if os.access(path, os.F_OK))
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return (
            "No stored runs yet. Press esc, then r to run what is under the cursor. "
            "Results of adk eval and adk web are listed here too."
        )
    return (
        f"{one_line(str(state))} is not writable, so only the last run is remembered. "
        "Choose another folder with --state-dir. Results of adk eval and adk web are listed here."
    )


def exact_time(started: str, now: datetime) -> str:
    """Return a time as `14:03:21` today, `21 Nov 14:03:21` this year, else `2025-11-21 14:03:21`, or "no date"."""
    return by_date(started, now, "%H:%M:%S", "%-d %b %H:%M:%S", "%Y-%m-%d %H:%M:%S")


def by_date(started: str, now: datetime, today: str, this_year: str, earlier: str, unknown: str = "no date") -> str:
    """Return an ISO 8601 time in the format for its date, or `unknown` if it is unknown or invalid."""
    time = local_time(started)
    if time is None:
        return unknown
    return time.strftime(today if time.date() == now.date() else this_year if time.year == now.year else earlier)


def agents_and_evalsets(run: ListedRun, most: int = 3) -> str:
    """Return the first `most` agents and evalsets of a run, such as `order_desk · refunds, parcels`."""
    agents = ", ".join(label(name) for name in run.agents[:most] if name) or "?"
    if run.made_by == "adk":
        # `AGENT_EVALSET_TIME`
        sets = run.run_id.removeprefix(f"{run.agents[0]}_").rpartition("_")[0] if run.agents else run.run_id
        return f"{agents} · {label(sets)}"
    names = [label(evalset_name(file)) for file in run.files if file]
    return " · ".join(filter(None, [agents, few(names, most)]))


def evalset_name(file: str) -> str:
    """Return the name of an evalset file without folder and suffixes. The name is not made safe."""
    return PurePosixPath(file).name.removesuffix(".json").removesuffix(".evalset").removesuffix(".test")


def counts(run: Mapping[str, int]) -> list[Piece]:
    """Return the number of cases by status as `10✓ 2✗`, or "no cases"."""
    pieces: list[Piece] = []
    for status in SHOWN:
        if run.get(status):
            pieces += [(" ", "")] if pieces else []
            pieces.append((f"{run[status]}{FACES[status].glyph}", style_of(status)))
    return pieces or [("no cases", "muted")]


def counts_in_words(run: Mapping[str, int]) -> str:
    """Return the number of cases by status as `10 passed, 2 failed, 1 error, 3 unfinished`, or "no cases"."""
    return ", ".join(counted_status(_WORDS.get(one, one), run[one]) for one in SHOWN if run.get(one)) or "no cases"


def meter(run: Mapping[str, int], width: int) -> list[Piece]:
    """Return a bar of `width` cells, divided by status, or blanks for a run without cases.

    Each status in the run has at least one cell.
    """
    total = sum(run.get(status, 0) for status in SHOWN)
    if not total:
        return [(" " * width, "")]
    shares = {status: max(1, round(run[status] * width / total)) for status in SHOWN if run.get(status)}
    while sum(shares.values()) > width and max(shares.values()) > 1:
        shares[max(shares, key=lambda status: shares[status])] -= 1
    drawn: list[Piece] = [("━" * share, style_of(status)) for status, share in shares.items()]
    rest = width - sum(shares.values())
    if rest > 0:
        last, style = drawn[0]
        drawn[0] = (last + "━" * rest, style)
    return drawn


_INJECTED = "injected faults"


def flags(run: ListedRun, *, baseline: str | None, running: str) -> list[str]:
    """Return the special properties of a run as texts, such as `baseline`, most important first."""
    found = []
    if run.trouble:
        found.append("newer version" if "later version" in run.trouble else "damaged")
    if run.run_id == baseline and not run.is_foreign:
        found.append("baseline")
    if run.run_id == running:
        found.append("running")
    elif not run.ended and not run.trouble:
        found.append("did not end")
    others = (
        (run.interrupted, "interrupted"),
        (run.by_function, f"{BY_FUNCTION.glyph} {BY_FUNCTION.word}"),
        (run.other_criteria, f"{OTHER_CRITERIA.glyph} {OTHER_CRITERIA.word}"),
        (run.injected, _INJECTED),
        (run.fork, "fork"),
        (run.frozen, f"{FROZEN.glyph} {frozen_count(run.frozen, run.total)}"),
        (run.scored_from, "scored again"),
        (run.is_foreign, run.made_by),
    )
    return [*found, *(flag for holds, flag in others if holds)]


def sign_of(flag: str) -> str:
    """Return the short form of a flag, such as `ƒ` or `faults`, or the flag itself if it has none."""
    if flag == _INJECTED:
        return flag.split()[-1]
    signs = (BY_FUNCTION.glyph, OTHER_CRITERIA.glyph, FROZEN.glyph)
    return next((sign for sign in signs if flag.startswith(f"{sign} ")), flag)


def seconds(value: float | None) -> str:
    """Return a duration as `4.2 s` or `12:03`, or "" if it is not known."""
    if value is None:
        return ""
    if value < _MINUTE:
        return f"{value:.1f} s"
    return clock(round(value))


def short_number(number: int) -> str:
    """Return a number as `950`, `12k` or `3.4M`."""
    if number < 10_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def pass_change(better: float | None) -> Piece:
    """Return the change in passed cases since the previous run as `+2`, `−0.3` or `=`, with its style.

    Without a previous run (None), the text is empty.
    """
    if better is None:
        return "", "muted"
    if abs(better) < _LEAST_CHANGE:
        return "=", "muted"
    number = cut_to_tenths(max(abs(better), 0.1))
    return (f"+{number}", "passed") if better > 0 else (f"−{number}", "failed")


def run_facts(run: ListedRun, special: Sequence[str]) -> list[str]:
    """Return the facts about a run that do not fit into its row. `special` are the run's flags."""
    time = local_time(run.started)
    found = [f"{time:%A, %-d %B %Y, %H:%M:%S}" if time else "no date", agents_and_evalsets(run, _LISTED)]
    found += [f"in {seconds(run.seconds)}"] if run.seconds else []
    found += [f"{counted(run.calls, 'model call')}, {counted(run.tokens, 'token')}"] if run.calls or run.tokens else []
    found += [f"commit {commit_words(run.commit, run.dirty)}"] if run.commit else []
    found += [f"scored from {one_line(run.scored_from, limit=60)}"] if run.scored_from else []
    return [*found, *special]


def fork_facts(fork: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the origin and the change of a fork as (label, safe text), or [] if the run is not a fork."""
    if not fork:
        return []
    place = f"call {fork['call']}" if fork.get("call") else f"turn {fork.get('turn', 0) + 1}"
    facts = [("fork of", one_line(f"{fork.get('run_id')} at {place}", limit=200))]
    change, agent = str(fork.get("change")), fork.get("agent")
    of = f" of {agent}" if agent and change in ("instruction", "model") else ""
    changed = "nothing changed" if change == "nothing" else f"{change}{of}: {fork.get('text')}"
    return [*facts, ("change", one_line(changed, limit=1000))]
