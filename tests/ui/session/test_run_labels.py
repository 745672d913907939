"""Labels of runs: short, aligned, and never longer than one line."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.hostile import HOSTILE, leaks
from workbench.results.cells import cell_len
from workbench.results.plain_lines import commit_words
from workbench.store.history.summary import ListedRun
from workbench.ui.history.screen import RunFilter, RunRows
from workbench.ui.session import run_labels

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).astimezone()
RUN = ListedRun(
    "2026-11-22T11-00-00-aaaa",
    "/x/events.jsonl",
    "2026-11-22T11:00:00Z",
    4.2,
    counts={"passed": 10, "failed": 2, "error": 0, "not_evaluated": 0},
    commit="ab12cd34ef",
    dirty=True,
    agents=("desk",),
    files=("desk/refunds.evalset.json", "desk/late.test.json"),
)


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(days=400), f"{NOW - timedelta(days=400):%Y-%m-%d}"),
    ],
)
def test_short_time_depends_on_the_age(ago: timedelta, said: str) -> None:
    assert run_labels.short_time((NOW - ago).astimezone(UTC).isoformat(), NOW) == said


def test_each_short_time_fits_into_its_column() -> None:
    times = [(NOW - timedelta(hours=hours)).isoformat() for hours in range(0, 10_000, 7)]
    assert all(cell_len(run_labels.short_time(time, NOW)) <= 12 for time in [*times, "", "soon", "2026-99-99"])


def test_run_label_names_agents_and_evalsets() -> None:
    assert run_labels.agents_and_evalsets(RUN) == "desk · refunds, late"
    assert commit_words(RUN.commit, RUN.dirty) == "ab12cd34+"
    assert run_labels.counts_in_words(RUN.counts) == "10 passed, 2 failed"
    assert run_labels.counts_in_words({"passed": 10, "error": 0, "not_run": 3}) == "10 passed, 3 unfinished"
    assert run_labels.pass_change(-2) == ("−2", "failed")
    assert run_labels.seconds(723.4) == "12:03"


def test_facts_below_the_list_are_the_omitted_or_cut_parts_of_a_row() -> None:
    files = tuple(f"desk/{name}.evalset.json" for name in "abcde")
    facts = run_labels.run_facts(replace(RUN, files=files, counts={"passed": 77}), ["baseline"])
    assert facts[1:] == ["desk · a, b, c, d, e", "in 4.2 s", "commit ab12cd34+", "baseline"]
    assert run_labels.counts_in_words({"passed": 1_000, "error": 2}) == "1,000 passed, 2 errors"


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("counts", [(1000, 1, 1, 1), (1, 0, 0, 0), (0, 0, 0, 0), (1, 1, 0, 0)])
def test_meter_has_its_width_and_shows_each_status(width: int, counts: tuple[int, ...]) -> None:
    run = dict(zip(("passed", "failed", "error", "not_evaluated"), counts, strict=True))
    pieces = run_labels.meter(run, width)
    kinds = sum(count > 0 for count in counts)
    assert sum(cell_len(text) for text, _ in pieces) == max(width, kinds)
    assert len({name for _, name in pieces}) == max(kinds, 1)


def test_flags_name_the_special_properties_of_a_run() -> None:
    run = replace(RUN, interrupted=True, scored_from="x")
    assert run_labels.flags(run, baseline=RUN.run_id, running="") == ["baseline", "interrupted", "scored again"]
    assert run_labels.flags(replace(RUN, seconds=None), baseline=None, running="") == ["did not end"]
    assert run_labels.flags(replace(RUN, seconds=None), baseline=None, running=RUN.run_id) == ["running"]
    assert run_labels.flags(ListedRun("x", "y", trouble="a later version wrote it"), baseline=None, running="") == [
        "newer version"
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", True), ("refunds ab12", True), ("other", False), (":fail", True), (":pass", False), (":base", True)],
)
def test_run_filter_matches_words_statuses_and_flags(text: str, shown: bool) -> None:
    assert RunFilter(text).lets_through(RUN, ["baseline"]) is shown


@pytest.mark.parametrize("width", [40, 58, 80, 120])
def test_hostile_names_stay_in_their_row(width: int) -> None:
    rows = RunRows()
    for text in HOSTILE:
        odd = replace(RUN, run_id=text, agents=(text,), files=(text,), commit=text, path=str(Path("/x") / "y"))
        rows.rows = [odd, replace(odd, trouble=text), replace(odd, made_by="adk")]
        for position in range(3):
            left, right = rows.row_pieces(position, width)
            assert not leaks("".join(piece for piece, _ in (*left, *right)))
            assert sum(cell_len(piece) for piece, _ in right) < max(width - 20, 40)


def test_unwritable_state_folder_is_named_in_an_empty_history(tmp_path: Path) -> None:
    assert run_labels.no_runs_text(tmp_path / "not/there/yet").startswith("No stored runs yet.")
    (tmp_path / "file").touch()
    assert "is not writable" in run_labels.no_runs_text(tmp_path / "file/below")


def test_flag_is_shown_as_a_sign_if_there_is_little_room() -> None:
    assert run_labels.sign_of("ƒ function") == "ƒ"
    assert run_labels.sign_of("baseline") == "baseline"
