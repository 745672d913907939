from xml.etree import ElementTree as Tree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.stores import FAILED, all_statuses, case_events, failed_with_errors, feed, ref, started
from tests.hostile import HOSTILE, leaks
from workbench.events.events import CaseError, CaseRef, MetricResult, OutputCaptured, RunFinished
from workbench.exporting.junit import junit_pieces
from workbench.store.store import Store


def parsed(store: Store) -> Tree.Element:
    return Tree.fromstring(b"".join(junit_pieces(store)))


def cases_of(root: Tree.Element) -> dict[str, Tree.Element]:
    return {str(case.get("name")): case for case in root.iter("testcase")}


def test_every_status_has_its_element(store: Store) -> None:
    outcomes = {
        name: [child.tag for child in case if not child.tag.startswith("system-")]
        for name, case in cases_of(parsed(store)).items()
    }
    assert outcomes == {
        "on_time": [],
        "late_parcel": ["failure"],
        "unknown_order": ["error"],
        "needs_a_key": ["skipped"],
        "desk/torn.evalset.json": ["error"],
        "on_time#2": ["error"],
        "two_parcels": ["skipped"],
    }


def test_counts_of_the_suites_add_up_to_the_totals(store: Store) -> None:
    root = parsed(store)
    figures = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert figures == {"tests": "7", "failures": "1", "errors": "3", "skipped": "2", "time": "4.200"}
    for name in ("tests", "failures", "errors", "skipped"):
        assert sum(int(suite.get(name, "")) for suite in root) == int(root.get(name, ""))


def test_each_evalset_is_a_suite(store: Store) -> None:
    root = parsed(store)
    assert [(suite.get("name"), suite.get("file")) for suite in root] == [
        ("desk/refunds", "desk/refunds.evalset.json"),
        ("?/torn", "desk/torn.evalset.json"),
    ]
    assert root[0].get("timestamp") == "2026-11-21T10:30:00"
    assert root[0].get("time") == "7.500"
    criteria = root[0].find("properties/property[@name='criteria']")
    assert criteria is not None
    assert criteria.get("value") == "tool_trajectory_avg_score 1.0 (test_config.json beside the evalset)"


def test_failure_has_a_short_message_and_the_full_case(store: Store) -> None:
    failure = cases_of(parsed(store))["late_parcel"].find("failure")
    assert failure is not None
    assert failure.get("message") == (
        'tool_trajectory_avg_score 0.5 < 1.0: turn 2: args.amount: number 12.5, got text "12.50"'
    )
    assert failure.text is not None
    for part in ("response_match_score", "user      hello", "test_config.json beside the evalset"):
        assert part in failure.text


def test_failure_also_names_the_error_of_a_judge() -> None:
    store = feed([started([FAILED])], failed_with_errors(FAILED), [RunFinished(1.0)])
    root = parsed(store)
    failure = cases_of(root)["late_parcel"].find("failure")
    assert failure is not None
    assert failure.get("type") == "failed"
    assert (failure.get("message") or "").endswith("judge: final_response_match_v2: turn 1: no connection")
    assert (root.get("failures"), root.get("errors")) == ("1", "0")


def test_error_has_the_traceback_and_the_output(store: Store) -> None:
    case = cases_of(parsed(store))["unknown_order"]
    error = case.find("error")
    assert error is not None
    assert error.get("type") == "agent_raised"
    assert 'tools.py", line 12, in find' in str(error.text)
    assert case.findtext("system-out") == "printed hello\n"


def test_long_output_is_cut_at_its_beginning() -> None:
    flood = [OutputCaptured(FAILED, "stderr", "x" * 90_000 + "the last words")]
    store = feed([started([FAILED])], case_events(FAILED, "passed")[:-1], flood)
    printed = cases_of(parsed(store))["late_parcel"].findtext("system-err")
    assert printed is not None
    assert printed.endswith("the last words")
    assert len(printed) < 50_000


@settings(deadline=None, max_examples=50)
@given(st.text() | st.sampled_from(HOSTILE))
def test_any_text_gives_valid_xml(text: str) -> None:
    case = CaseRef(text, text, text, text)
    metric = MetricResult(text, "failed", 0.0, 1.0, text)
    events = [*case_events(case, "failed", [metric], text=text)]
    broken = case_events(ref(text), "error", error=CaseError("crashed", text, text, text))
    root = parsed(feed([started([case, ref(text)], text)], events, broken, [RunFinished(1.0)]))
    assert root.get("tests") == ("2" if case != ref(text) else "1")
    for element in root.iter():
        for part in (element.text or "", *element.attrib.values()):
            assert not leaks(part)


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\ufffe", "\uffff", "\ud800", "\U0010ffff"])
def test_characters_at_the_limits_of_xml_are_escaped_or_replaced(character: str) -> None:
    metric = MetricResult("m", "failed", 0.0, 1.0, f"before{character}after")
    failure = parsed(feed([started([FAILED])], case_events(FAILED, "failed", [metric]))).find(".//failure")
    assert failure is not None
    assert "before" in str(failure.get("message"))
    assert "after" in str(failure.get("message"))


def test_interrupted_run_gives_a_complete_file() -> None:
    root = parsed(all_statuses(interrupted=True))
    skipped = cases_of(root)["two_parcels"].find("skipped")
    assert skipped is not None
    assert "before this case started" in str(skipped.get("message"))


def test_run_without_cases_counts_zero_tests() -> None:
    assert parsed(feed([started([]), RunFinished(0.0)])).get("tests") == "0"
