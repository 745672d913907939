"""Recorded requests and answers: stored once, without secrets, and reported if lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.stored import sql
from workbench.criteria.secrets import Secrets
from workbench.events.event_json import as_line, from_json, to_json
from workbench.events.events import CallsRecorded, CaseRef, SpansRecorded
from workbench.run.recorder import PieceStorage
from workbench.store.history.run_writer import RunWriter
from workbench.store.spans import PieceLostError, Pieces, Recorded

REF = CaseRef("desk", "desk/r.evalset.json", "r", "one")
SECRETS = Secrets([{"API_KEY": "abcdefgh-1", "PIN_TOKEN": "12345678"}])


def settled(tmp_path: Path, *events: Recorded) -> list[Recorded]:
    journal, keeping = RunWriter.open(tmp_path, "run-1"), PieceStorage(SECRETS)
    found = [keeping.store(event, journal) for event in events]
    journal.write([as_line(event) for event in found], sync=False)
    journal.close()
    return found


def kept_pieces(tmp_path: Path) -> list[str]:
    return [row[0] for row in sql(tmp_path, "SELECT data FROM piece ORDER BY id")]


def test_piece_is_stored_once_and_read_back(tmp_path: Path) -> None:
    first = SpansRecorded(REF, 0, "[]", {"aa": '"what"', "bb": '{"x": [1]}'})
    second = SpansRecorded(REF, 1, "[]", {"aa": '"what"', "cc": '"\\u65e5\\u672c"'})
    found = settled(tmp_path, first, second)
    assert all(event.pieces == {} and event.kept_in == "run-1" for event in found)
    assert kept_pieces(tmp_path) == [
        '"what"',
        '{"x": [1]}',
        '"\\u65e5\\u672c"',
    ]
    read_back = [from_json(json.loads(json.dumps(to_json(event)))) for event in found]
    assert read_back == found
    pieces = Pieces(found, tmp_path)
    assert [pieces.read(name) for name in ("aa", "bb", "cc")] == ["what", {"x": [1]}, "日本"]


def test_secrets_are_not_stored(tmp_path: Path) -> None:
    spans = json.dumps([{"id": 1, "error": "key abcdefgh-1 refused", "tokens": [12345678, 1]}])
    (found,) = settled(tmp_path, SpansRecorded(REF, 0, spans, {"aa": '{"key": "abcdefgh-1", "pin": 12345678}'}))
    (kept,) = kept_pieces(tmp_path)
    assert isinstance(found, SpansRecorded)
    for text in (kept, found.spans):
        assert "abcdefgh-1" not in text
        assert "12345678" not in text
        assert json.loads(text.splitlines()[0])


def test_calls_share_the_pieces_of_spans_unless_the_pieces_are_cut(tmp_path: Path) -> None:
    cut = '{"cut_at":9,"characters":20,"begins":"\\"a long"}'
    spans = SpansRecorded(REF, 0, "[]", {"aa": '"what"', "bb": cut})
    calls = CallsRecorded(REF, 0, '[{"answer": "abcdefgh-1"}]', {"aa": '"what"', "bb": '"a long answer"'})
    other = replace(spans, turn=1)
    first, second, third = settled(tmp_path, spans, calls, other)
    assert kept_pieces(tmp_path) == [*spans.pieces.values(), '"a long answer"']
    assert from_json(json.loads(json.dumps(to_json(second)))) == second
    assert isinstance(second, CallsRecorded)
    assert second.calls == '[{"answer":"[secret API_KEY]"}]'
    assert Pieces([second, first], tmp_path).read("bb") == "a long answer"
    assert Pieces([third], tmp_path).read("bb")["begins"] == '"a long'


def test_pieces_stay_in_the_event_if_nothing_can_be_written() -> None:
    event = SpansRecorded(REF, 0, "[]", {"aa": '{"key": "abcdefgh-1"}'})
    found = PieceStorage(SECRETS).store(event, None)
    assert Pieces([found], None).read("aa") == {"key": "[secret API_KEY]"}
    assert found.kept_in == ""


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("UPDATE piece SET data = 'x'", "deleted or damaged"),
        ("UPDATE piece SET data = x'ff'", "deleted or damaged"),
        ("DELETE FROM piece", "deleted or damaged"),
        ("DELETE FROM run", "deleted or damaged"),
        ("DROP TABLE piece", "deleted or damaged"),
    ],
)
def test_lost_piece_is_reported(tmp_path: Path, damage: str, why: str) -> None:
    (found,) = settled(tmp_path, SpansRecorded(REF, 0, "[]", {"aa": '"what"'}))
    sql(tmp_path, damage)
    pieces = Pieces([found], tmp_path)
    with pytest.raises(PieceLostError, match=why):
        pieces.read("aa")
    with pytest.raises(PieceLostError, match="not recorded"):
        pieces.read("never")


@pytest.mark.parametrize("kept", ["[", "[]", '{"aa": 5}', '{"aa": ["x"]}', '{"aa": -5}', '{"aa": 1e99}'])
def test_malformed_places_are_reported_as_lost(tmp_path: Path, kept: str) -> None:
    settled(tmp_path, SpansRecorded(REF, 0, "[]", {"aa": '"what"'}))
    event = SpansRecorded(REF, 0, "[]", {}, kept, "../runs/run-1")
    with pytest.raises(PieceLostError):
        Pieces([event], tmp_path).read("aa")
