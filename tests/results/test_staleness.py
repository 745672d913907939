import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.stores import FAILED, all_statuses
from tests.hostile import HOSTILE
from workbench.results.cells import cell_len
from workbench.results.document import Subject
from workbench.results.faces import stale_count, stale_line, stale_mark
from workbench.results.title import ending, title
from workbench.store.details import read_details
from workbench.store.inputs import Change
from workbench.text.safe_text import one_line

MODEL = Change("environment", "GEMINI_MODEL", "order_desk/.env", "run")
PROMPT = Change("agent_file", "order_desk/prompt.txt", "order_desk/prompt.txt", "run")
THRESHOLD = Change("criteria", "response_match_score threshold", "order_desk/test_config.json", "decide")


@pytest.mark.parametrize(
    ("room", "mark"),
    [
        (50, "stale: .env GEMINI_MODEL, order_desk/prompt.txt"),
        (40, "stale: .env GEMINI_MODEL, prompt.txt"),
        (36, "stale: .env GEMINI_MODEL, prompt.txt"),
        (35, "stale: .env GEMINI_MODEL and 1 more"),
        (20, "~.env GEMINI_MODEL"),
        (12, "~.env GEMIN…"),
        (6, "~stale"),
        (5, "~"),
        (0, "~"),
    ],
)
def test_reason_is_shortened_before_the_sign_is_left_out(room: int, mark: str) -> None:
    assert stale_mark((MODEL, PROMPT), room) == mark


@given(st.text(min_size=1), st.integers(1, 80))
def test_stale_mark_always_fits_into_its_room(name: str, room: int) -> None:
    assert cell_len(stale_mark((Change("agent_file", name, name, "run"),), room)) <= room


def test_strongest_change_is_named_first() -> None:
    assert stale_line((THRESHOLD, PROMPT)) == ("stale: order_desk/prompt.txt, criteria: response_match_score threshold")


def test_stale_count_names_each_change_once() -> None:
    assert stale_count([(MODEL, PROMPT), (PROMPT,), (MODEL,)]) == (
        "3 stale: .env GEMINI_MODEL, prompt.txt",
        "3 stale",
    )
    assert stale_count([]) == ("", "")


@pytest.mark.parametrize("name", HOSTILE)
def test_control_codes_in_file_names_do_not_reach_the_terminal(name: str) -> None:
    change = Change("agent_file", name, name, "run")
    for text in (stale_line((change,)), stale_mark((change,), 60), *stale_count([(change,)])):
        assert text.strip() == one_line(text).strip()


@pytest.mark.parametrize("width", [30, 60, 120])
def test_stale_reason_leaves_room_for_the_name_of_the_case(width: int) -> None:
    store = all_statuses()
    fresh = Subject(read_details(store.records[FAILED]))
    stale = Subject(read_details(store.records[FAILED]), stale=(MODEL, PROMPT))
    tail = ending(stale, width)
    assert tail.plain.startswith(("stale: ", "~"))
    room = width - tail.cell_len
    if width >= 60:
        assert title(stale, room - 4).endswith(title(fresh, 1000).rpartition(" › ")[2])
    assert "stale" not in ending(fresh, width).plain
