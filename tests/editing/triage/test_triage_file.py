"""The triage file: entries of others are never lost, and a broken file is left unchanged."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.agents.workspace import open_workspace
from workbench.editing.saving import Saver
from workbench.editing.triage.entry import About, Entry, Judged, entry_json, entry_of
from workbench.editing.triage.triage_file import (
    SCHEMA,
    BrokenTriageError,
    Change,
    changed,
    read_triage,
    save_triage,
    triage_path,
)

FILE = Path("refunds.triage.json")


def entry(case: str = "late_parcel", criterion: str = "hallucinations_v1", **more: Any) -> Entry:
    answer = more.pop("answer", "a1")
    about = About(case, criterion, more.pop("turn", None), more.pop("part", ""), more.pop("name", ""))
    judged = Judged("failed", answer, 0.5, 0.8, "gemini-2.5-flash", "run-1")
    return Entry(about, judged, **{"triage": "judge wrong", "says": "passed", "at": "2026-11-22T02:30:00Z", **more})


def data(content: bytes | None) -> list[Any]:
    assert content is not None
    found: list[Any] = json.loads(content)["entries"]
    return found


TEXT = st.text(max_size=20)
ENTRIES = st.builds(
    Entry,
    st.builds(
        About,
        st.text(min_size=1, max_size=10),
        TEXT,
        st.none() | st.integers(1, 9),
        st.sampled_from(["", "sentence", "rubric", "verdict"]),
    ),
    st.builds(Judged, TEXT, TEXT, st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    TEXT,
    TEXT,
    TEXT,
    TEXT,
)


@given(ENTRIES)
def test_entry_is_read_as_written(one: Entry) -> None:
    assert entry_of(json.loads(json.dumps(entry_json(one)))) == one


@given(st.lists(ENTRIES, max_size=8))
def test_file_does_not_depend_on_the_order_of_entries(items: list[Entry]) -> None:
    unique = list({one.key: one for one in items}.values())
    together = changed(FILE, None, unique)
    one_by_one = None
    for one in reversed(unique):
        one_by_one = changed(FILE, one_by_one, [one])
    if unique:
        assert data(together) == data(one_by_one)
    else:
        assert together is one_by_one is None


def test_new_entry_leaves_other_bytes_alone() -> None:
    before = changed(FILE, None, [entry("a"), entry("c")])
    assert before is not None
    after = changed(FILE, before, [entry("b", note="日本語")])
    assert after is not None
    added = [line for line in after.decode().splitlines() if line not in before.decode().splitlines()]
    assert [line.strip() for line in added] == ['"case": "b",', '"note": "日本語",']
    assert changed(FILE, after, [], [entry("b").key]) == before


def test_unknown_fields_are_kept() -> None:
    strange = {"case": "z", "mood": 1.50}
    known = {**entry_json(entry()), "reviewed_by": "Kim"}
    text = json.dumps({"schema": SCHEMA, "team": "shop", "entries": [known, strange]}, indent=4)
    after = changed(FILE, text.encode(), [entry(note="seen")])
    assert after is not None
    assert json.loads(after)["team"] == "shop"
    assert data(after)[0]["reviewed_by"] == "Kim"
    assert data(after)[0]["note"] == "seen"
    assert data(after)[1] == strange


def test_entry_for_another_answer_is_separate() -> None:
    content = changed(FILE, None, [entry(), entry(answer="b2"), entry(note="later")])
    assert [(item["judged"]["answer"], item.get("note")) for item in data(content)] == [("a1", "later"), ("b2", None)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"<<<<<<< HEAD\n{}",
        b'{"schema": "agent-workbench/triage/9", "entries": []}',
        b'{"schema": "agent-workbench/triage/1", "entries": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_broken_file_is_named_and_left_unchanged(content: bytes, tmp_path: Path) -> None:
    evalset = tmp_path / "refunds.evalset.json"
    file = triage_path(evalset)
    file.write_bytes(content)
    with pytest.raises(BrokenTriageError, match=r"refunds\.triage\.json"):
        read_triage(evalset)
    with pytest.raises(BrokenTriageError):
        save_triage(Saver(tmp_path / ".workbench", tmp_path), "triage", {evalset: Change((entry(),))})
    assert file.read_bytes() == content


def test_invalid_entry_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    evalset = tmp_path / "refunds.evalset.json"
    entries = [entry_json(entry()), {"case": 3, "judged": {}}, "x", {"case": "a", "judged": {}, "turn": True}]
    triage_path(evalset).write_text(json.dumps({"schema": SCHEMA, "entries": entries}))
    found = read_triage(evalset)
    assert found.entries == (entry(),)
    assert len(found.trouble) == 3
    assert "entry 2" in found.trouble[0]


def test_undo_keeps_entries_that_others_added(tmp_path: Path) -> None:
    evalset = tmp_path / "refunds.evalset.json"
    saver = Saver(tmp_path / ".workbench", tmp_path)
    save_triage(saver, "one", {evalset: Change((entry("a"),))})
    theirs = changed(FILE, triage_path(evalset).read_bytes(), [entry("b")])
    assert theirs is not None
    triage_path(evalset).write_bytes(theirs)
    found = save_triage(saver, "two", {evalset: Change((entry("c"),)), tmp_path / "b.test.json": Change((entry(),))})
    assert [one.about.case for one in found[evalset].entries] == ["a", "b", "c"]
    assert (tmp_path / "b.test.triage.json").is_file()
    saver.undo()
    assert triage_path(evalset).read_bytes() == theirs
    assert not (tmp_path / "b.test.triage.json").exists()


def test_file_is_deleted_with_its_last_entry(tmp_path: Path) -> None:
    evalset = tmp_path / "refunds.evalset.json"
    saver = Saver(tmp_path / ".workbench", tmp_path)
    save_triage(saver, "one", {evalset: Change((entry(),))})
    assert triage_path(evalset).is_file()
    save_triage(saver, "back", {evalset: Change(removed=frozenset([entry().key]))})
    assert not triage_path(evalset).exists()


def test_triage_file_is_not_an_evalset(tmp_path: Path) -> None:
    names = {"refunds.evalset.json": "refunds.triage.json", "refunds.test.json": "refunds.test.triage.json"}
    assert {name: triage_path(Path(name)).name for name in names} == names
    for name in names:
        (tmp_path / name).write_text('{"eval_set_id": "x", "eval_cases": []}')
        noted = entry(note='"eval_cases" "expected_tool_use"')
        content = changed(FILE, None, [noted])
        assert content is not None
        triage_path(tmp_path / name).write_bytes(content)
    found = open_workspace(tmp_path)
    assert [one.file.name for one in found.evalsets] == sorted(names)
    assert found.ignored == ()


def test_evalsets_whose_names_differ_only_in_evalset_have_their_own_files(tmp_path: Path) -> None:
    pair = [tmp_path / "refunds.evalset.json", tmp_path / "refunds.json"]
    saver = Saver(tmp_path / ".workbench", tmp_path)
    for number, evalset in enumerate(pair):
        evalset.write_text('{"eval_set_id": "x", "eval_cases": []}')
        save_triage(saver, "triage", {evalset: Change((entry(f"case {number}"),))})
    assert [one.about.case for evalset in pair for one in read_triage(evalset).entries] == ["case 0", "case 1"]
    assert triage_path(pair[0]).name == "refunds.triage.json"
    pair[0].unlink()
    assert read_triage(pair[1]).entries == (entry("case 1"),), "it keeps its file when it is alone again"


def test_git_merges_entries_of_two_people(tmp_path: Path) -> None:
    base, ours, theirs = (tmp_path / name for name in ("base", "ours", "theirs"))
    items = [entry(case) for case in "bdf"]
    base.write_bytes(changed(FILE, None, items) or b"")
    ours.write_bytes(changed(FILE, None, [*items, entry("a")]) or b"")
    theirs.write_bytes(changed(FILE, None, [*items, entry("e")]) or b"")
    done = subprocess.run(["git", "merge-file", "-p", ours, base, theirs], capture_output=True)
    assert done.returncode == 0
    assert [item["case"] for item in data(done.stdout)] == ["a", "b", "d", "e", "f"]


def test_fields_have_a_fixed_order() -> None:
    items = [entry("a", part="sentence", name="x", turn=1), entry("b", part="rubric", name="y", turn=1, note="n")]
    found = data(changed(FILE, changed(FILE, None, items[:1]), items[1:]))
    assert list(found[1]) == ["case", "criterion", "turn", "rubric", "triage", "says", "note", "at", "judged"]


def test_own_verdict_replaces_one_given_by_cause() -> None:
    before = changed(FILE, None, [entry("a", by="cause"), entry("b", by="cause")])
    assert [one.get("by") for one in data(before)] == ["cause", "cause"]
    after = changed(FILE, before, [entry("a")])
    assert [one.get("by") for one in data(after)] == [None, "cause"]
    assert entry_of(data(after)[1]).by == "cause"


@given(st.lists(ENTRIES, max_size=6), st.lists(ENTRIES, min_size=1, max_size=4))
def test_entries_do_not_depend_on_the_layout_of_the_file(before: list[Entry], put: list[Entry]) -> None:
    content = changed(FILE, None, before)
    own = changed(FILE, content, put)
    # A blank at the end makes it a file that somebody has formatted.
    other = changed(FILE, None if content is None else content + b"\n", put)
    assert data(own) == data(other)


@pytest.mark.parametrize("score", ['"0.5"', "true", "9" * 400])
def test_entry_with_a_score_that_is_not_a_number_is_ignored_and_named(score: str, tmp_path: Path) -> None:
    text = json.dumps({"schema": SCHEMA, "entries": [entry_json(entry())]}).replace("0.5", score)
    triage_path(tmp_path / "refunds.evalset.json").write_text(text)
    found = read_triage(tmp_path / "refunds.evalset.json")
    assert not found.entries
    assert "ignored entry 1: `score` is not a number" in found.trouble[0]
