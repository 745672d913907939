"""`export`: each form is read back by what reads it, and hostile text does nothing in any."""

import codecs
import csv
import http.server
import io
import json
import math
import re
import shutil
import subprocess
import threading
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, RAISES, Project, PutBack, case
from tests.cli.stores import (
    ANSWER_PASSED,
    FAILED,
    PASSED,
    TRAJECTORY_FAILED,
    all_statuses,
    case_events,
    feed,
    started,
)
from tests.hostile import HOSTILE
from workbench.cli.export_command import _write
from workbench.cli.refusal import Refused
from workbench.editing.triage.entry import About, Entry, Judged
from workbench.editing.triage.triage_file import changed, triage_path
from workbench.events.events import MetricResult, MetricStatus, Noticed, RunFinished, SpansRecorded, TurnFinished
from workbench.exporting import html as export_html
from workbench.exporting.adk import build_adk
from workbench.exporting.exporter import Pieces, RunContext
from workbench.exporting.html import SCRIPT, SCRIPT_DIGEST, STYLE, build_html
from workbench.exporting.tables import build_csv, build_markdown, code_span
from workbench.results import evidence
from workbench.results.document import Subject
from workbench.results.lines import View
from workbench.store.details import read_details
from workbench.store.history.run_list import RunRate, Trend

ATTACK = '</pre><script>alert(1)</script><img src=x onerror=alert(1)> " onload="x" \x1b[31m \ud800 `|` @team =1+1'
_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "p", "details", "summary", "b", "i", "pre"),
    *("span", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "open"}
_DRAWN = {"svg", "rect", "line", "section", "div", "h2"}
_DRAWN_ATTRIBUTES = {"viewbox", "width", "height", "role", "x", "y", "x1", "x2", "y1", "y2"}
_SORTED = {"a", "button", "script"}
_SORTED_ATTRIBUTES = {"id", "href", "type", "disabled", "scope", "tabindex", "title", "data-order", "data-largest"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        (self.scripts if self.lasttag == "script" and data.strip() else self.words).append(data)


def _page(content: bytes) -> _Page:
    page = _Page()
    page.feed(content.decode())
    return page


@pytest.fixture(scope="module")
def put_back(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    def run(project: Project) -> None:
        project.evalset(GOOD, BAD, RAISES, case("hostile", ATTACK.replace("\ud800", ""), answer="no"))
        project.run("run", ".", "--plain", "--json", "report.json")

    return PutBack(tmp_path_factory.mktemp("ran"), run)


@pytest.fixture
def project(put_back: PutBack) -> Project:
    """A project whose run is over."""
    return put_back.project()


@pytest.mark.parametrize("text", [ATTACK, *HOSTILE])
def test_hostile_text_adds_no_markup_to_html(text: str) -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, text, {"note": text})
    store = feed(
        [started([PASSED, FAILED], text)], case_events(FAILED, "failed", [failed], text=text), [RunFinished(1.0)]
    )
    span = {"id": 1, "kind": "tool", "name": text, "start": 0.0, "end": 1.0, "error": text, "note": text}
    read_details(store.records[FAILED]).turns[0].spans = SpansRecorded(FAILED, 0, json.dumps([span]))
    content = build_html(store)
    page = _page(content)
    assert b"Trace: the duration of each step" in content
    assert page.tags <= _TAGS | _DRAWN | _SORTED
    assert page.attributes <= _ATTRIBUTES | _DRAWN_ATTRIBUTES | _SORTED_ATTRIBUTES
    assert page.scripts == [SCRIPT], "the only one, which the policy allows by its digest"
    assert b"\x1b" not in content
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_DIGEST}';" in content.decode()
    if "://" not in text:
        assert b"://" not in content


def test_html_has_every_case_and_unfolds_failures() -> None:
    store = all_statuses()
    content = build_html(store).decode()
    assert content.count("<details") == 7
    assert content.count("<details open") == 5
    assert content.index("late_parcel") < content.index("needs_a_key")
    assert "<td>tool_trajectory_avg_score<td>0<td>1<td>0<td>0.5" in content


def test_html_can_be_navigated_by_headings() -> None:
    store = all_statuses()
    content = build_html(store).decode()
    assert re.findall("<h2>([^<]*)</h2>", content)[-1] == "Cases"
    assert content.index("<h2>Cases</h2>") < content.index("<details")
    # A browser leaves out of its tree for screen readers what it does not lay out, and with it the heads.
    hidden = re.findall(r"^(.*)\{[^{}]*content-visibility: auto", STYLE, re.MULTILINE)
    assert [selector.strip() for selector in hidden] == ["pre"]
    assert "late_parcel <i>" in content


def test_large_html_shows_passed_cases_as_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*case_events(PASSED, "passed", [ANSWER_PASSED]), *case_events(FAILED, "failed", [TRAJECTORY_FAILED])]
    store = feed([started([PASSED, FAILED])], cases, [RunFinished(1.0)])
    whole = build_html(store).decode()
    monkeypatch.setattr(export_html, "_MAX_FULL", 1)
    short = build_html(store).decode()
    assert (whole.count("<details"), short.count("<details")) == (2, 1)
    assert "More than 1 cases" in short
    (line,) = [line for line in short.splitlines() if line.startswith("<p id=") and PASSED.eval_id in line]
    assert f"{ANSWER_PASSED.name} {ANSWER_PASSED.score:.3g}" in line
    assert FAILED.eval_id in short[short.index("<details open") :]


def test_hostile_reason_does_not_break_the_markdown_table() -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, ATTACK)
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed]), [RunFinished(1.0)])
    text = build_markdown(store).decode()
    (row,) = [line for line in text.splitlines() if "late_parcel" in line and line.startswith("|")]
    assert "\\|" in row
    assert row.replace("\\|", "").count("|") == 4
    assert code_span("a `` b`") == "``` a `` b` ```"


def test_markdown_of_many_failures_fits_into_a_comment() -> None:
    refs = [replace(FAILED, eval_id=f"case_{number}") for number in range(300)]
    failed = [MetricResult(f"criterion_{number}", "failed", 0.5, 0.8, "words " * 50) for number in range(3)]
    store = feed([started(refs)], *(case_events(ref, "failed", failed) for ref in refs), [RunFinished(1.0)])
    text = build_markdown(store).decode()
    assert text.splitlines()[0].startswith("### agent-workbench: 300 cases")
    assert len(text) < 65_536
    assert len(text) > 50_000
    before, *evidences, folded = text.split("<details>")
    assert before.count("❌") == 20
    assert len(evidences) <= 1
    assert "<summary>30 more that did not pass</summary>" in folded
    assert "and 250 more that did not pass" in folded


def test_markdown_has_the_evidence_of_the_screen() -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, "")
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed]), [RunFinished(1.0)])
    text = build_markdown(store).decode()
    assert "<details><summary>evidence</summary>" in text
    (record,) = store.read_current()
    shown = [line.plain.rstrip() for line in evidence.build(Subject(record), View(100)).lines]
    assert "\n".join(["```text", *shown, "```"]) in text


@pytest.mark.parametrize("sign", ["=", "@", "＝"])
def test_csv_cells_are_not_formulas(sign: str) -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, f"{sign}cmd|' /C calc'!A0")
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed]), [RunFinished(1.0)])
    (row,) = csv.DictReader(io.StringIO(build_csv(store).decode("utf-8-sig")))
    assert row["reason"] == f"'{sign}cmd|' /C calc'!A0"
    assert (row["score"], row["threshold"], row["case_status"]) == ("0.5", "0.8", "failed")


def test_csv_of_a_foreign_report_has_no_raw_text(project: Project, here: Here) -> None:
    case = json.loads(here("export", "last", "--format", "json").stdout)
    case["cases"] = [{**case["cases"][0], "matched_by": "=cmd|' /C calc'!A0\x1b[31m"}]
    project.write("foreign.json", case)
    done = here("export", "foreign.json", "--format", "csv")
    (row, *_) = csv.DictReader(io.StringIO(done.stdout))
    assert row["matched_by"].startswith("'=cmd")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("form", ["html", "json", "junit", "adk"])
def test_report_with_impossible_figures_can_be_exported(project: Project, here: Here, form: str) -> None:
    report = json.loads(here("export", "last", "--format", "json").stdout)
    report["cases"][0] |= {"duration_seconds": 10**400}
    report["cases"][1]["usage"]["output_tokens"] = -1
    project.write("foreign.json", {**report, "duration_seconds": math.nan})
    assert here("export", "foreign.json", "--format", form, "-o", "exported").returncode == 0


def test_adk_loads_an_exported_result_file(here: Here, tmp_path: Path) -> None:
    adk = pytest.importorskip("google.adk.evaluation.local_eval_set_results_manager")
    folder = tmp_path / "agents/echo/.adk/eval_history"
    folder.mkdir(parents=True)
    assert here("export", "last", "--format", "adk", "-o", str(folder)).returncode == 0
    manager = adk.LocalEvalSetResultsManager(str(tmp_path / "agents"))
    (name,) = manager.list_eval_set_results("echo")
    result = manager.get_eval_set_result("echo", name)
    assert result.eval_set_id == "talk"
    statuses = {item.eval_id: item.final_eval_status.name for item in result.eval_case_results}
    assert statuses == {"good": "PASSED", "bad": "FAILED", "raises": "FAILED", "hostile": "FAILED"}
    good = next(item for item in result.eval_case_results if item.eval_id == "good")
    assert {item.metric_name: item.score for item in good.overall_eval_metric_results}["response_match_score"] == 1.0
    assert good.eval_metric_result_per_invocation[0].actual_invocation.final_response.parts[0].text == "You said hello"


def test_adk_reads_every_status() -> None:
    utils = pytest.importorskip("google.adk.evaluation._eval_set_results_manager_utils")
    for content in build_adk(all_statuses()).values():
        assert utils.parse_eval_set_result_json(content.decode()).eval_case_results


@pytest.mark.parametrize("version", ["1.18.0", "2.13.0"])
def test_nan_and_infinity_can_be_exported_for_adk(version: str) -> None:
    utils = pytest.importorskip("google.adk.evaluation._eval_set_results_manager_utils")
    begun, *events = case_events(FAILED, "failed")
    call = {"name": "pay", "args": {"amount": math.nan, "most": math.inf}}
    actual = {"user_content": {}, "intermediate_data": {"tool_uses": [call]}}
    events = [replace(event, actual=actual) if isinstance(event, TurnFinished) else event for event in events]
    (content,) = build_adk(feed([started([FAILED])], [begun, *events], [RunFinished(1.0)]), version).values()
    (found,) = utils.parse_eval_set_result_json(content.decode()).eval_case_results
    (turn,) = found.eval_metric_result_per_invocation
    assert turn.actual_invocation.intermediate_data.tool_uses[0].args == {"amount": "nan", "most": "inf"}


@pytest.mark.parametrize(("version", "older"), [("1.18.0", True), ("2.12.0", True), ("2.13.0", False), (None, False)])
def test_export_is_valid_for_an_older_adk(version: str | None, older: bool) -> None:
    utils = pytest.importorskip("google.adk.evaluation._eval_set_results_manager_utils")
    for content in build_adk(all_statuses(), version).values():
        written = json.loads(content)
        assert isinstance(written, str) == older
        assert utils.parse_eval_set_result_json(content.decode()).eval_case_results, "the installed version reads it"
        if older:
            for key in ("token_usage_details", "duration", "usage_metadata", "custom_function_path"):
                assert f'"{key}"' not in written
            for case in json.loads(written)["eval_case_results"]:
                assert all(metric["eval_status"] <= 3 for metric in case["overall_eval_metric_results"])


def test_each_format_can_be_written_from_the_shell(project: Project, here: Here) -> None:
    report = json.loads((project.root / "report.json").read_text())
    assert json.loads(project.run("export", "last", "--format", "json").stdout) == report
    page = project.run("export", "last", "--format", "html", "-o", "page.html")
    assert (page.returncode, page.stdout) == (0, "")
    assert _page((project.root / "page.html").read_bytes()).tags <= _TAGS | _DRAWN | _SORTED
    suites = ElementTree.fromstring(here("export", "last", "--format", "junit").stdout.encode())
    assert suites.get("tests") == "4"
    assert "4 cases" in here("export", "last", "--format", "md").stdout
    rows = list(csv.DictReader(io.StringIO(here("export", "last", "--format", "csv").stdout)))
    assert "run_id" in rows[0]
    assert here("export", "last", "--format", "csv", "-o", "-").stdout.startswith("run_id,")
    assert not (project.root / "-").exists()
    here("export", "last", "--format", "csv", "-o", "./-")
    assert (project.root / "-").exists(), "a file with this name"
    here("export", "last", "--format", "csv", "-o", "for_excel.csv")
    assert (project.root / "for_excel.csv").read_bytes().startswith(codecs.BOM_UTF8 + b"run_id,")
    assert {row["eval_id"] for row in rows} == {"good", "bad", "raises", "hostile"}


def test_single_adk_result_goes_into_a_folder_or_a_named_file(here: Here, tmp_path: Path) -> None:
    folder = tmp_path / "agent/.adk/eval_history"
    for _ in range(2):
        assert here("export", "last", "--format", "adk", "-o", str(folder)).returncode == 0
    assert [file.name.partition("_")[0] for file in folder.iterdir()] == ["echo"]
    (tmp_path / "plain").touch()
    done = here("export", "last", "--format", "adk", "-o", str(tmp_path / "plain"))
    assert (done.returncode, (tmp_path / "plain").read_bytes()[:1]) == (0, b"{")


def test_run_without_cases_is_not_exported_for_adk(here: Here) -> None:
    here("run", ".", "-k", "no such case", "--json", "empty.json")
    for output in ("-", "folder"):
        done = here("export", "empty.json", "--format", "adk", "-o", output)
        assert (done.returncode, done.stderr.splitlines()[0]) == (
            2,
            "Error: the run has no cases, so this format has nothing to write",
        )


def test_adk_results_have_valid_and_distinct_names() -> None:
    long, colon = "長い" * 200, "a/b"
    refs = [replace(PASSED, eval_set_id=name, evalset_file=name) for name in (long, long + "2", colon, "a_b")]
    events = [event for ref in refs for event in case_events(ref, "passed", [ANSWER_PASSED])]
    files = build_adk(feed([started(refs)], events, [RunFinished(1.0)]))
    assert len(files) == 4
    assert max(len(name.encode()) for name in files) <= 255
    for name, content in files.items():
        assert json.loads(content)["eval_set_result_id"] == name.removesuffix(".evalset_result.json")


def test_several_files_can_only_be_exported_into_a_folder(tmp_path: Path) -> None:
    files = {"a.evalset_result.json": b"1", "b.evalset_result.json": b"2"}
    contents: dict[str, Pieces] = {name: (content,) for name, content in files.items()}
    _write(contents, tmp_path / "agent/history", is_folder=True)
    assert {file.name: file.read_bytes() for file in (tmp_path / "agent/history").iterdir()} == files
    for output in (tmp_path / "all.json", None):
        with pytest.raises(Refused, match="2 files") as refused:
            _write(contents, output, is_folder=True)
        assert refused.value.hint == "Name a folder with -o FOLDER"


def test_export_of_a_report_equals_the_export_of_its_run(here: Here) -> None:
    for form in ("json", "csv", "md"):
        kept = here("export", "last", "--format", form).stdout
        assert here("export", "report.json", "--format", form).stdout == kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["last"], "--format"),
        (["--format", "md"], "not 0"),
        (["9999", "--format", "md"], "no run 9999"),
        (["last", "--format", "pdf"], "pdf"),
        (["last", "--format", "md", "-o", "no/such/folder.md"], "does not exist"),
    ],
    ids=" ".join,
)
def test_wrong_command_line_is_refused(here: Here, words: list[str], said: str) -> None:
    done = here("export", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_markdown_of_a_case_with_hundreds_of_failed_criteria_fits_into_a_comment() -> None:
    metrics = [MetricResult(f"criterion_{number}", "failed", 0.0, 1.0, "w" * 400) for number in range(400)]
    text = build_markdown(
        feed([started([FAILED])], case_events(FAILED, "failed", metrics), [RunFinished(1.0)])
    ).decode()
    assert len(text) < 65_536
    assert re.search("<br>and [0-9]+ more reasons", text)


def test_evalsets_with_the_same_id_are_two_adk_results() -> None:
    refs = [replace(PASSED, evalset_file=f"desk/{name}.evalset.json") for name in "ab"]
    events = [event for each in refs for event in case_events(each, "passed")]
    files = build_adk(feed([started(refs)], events, [RunFinished(1.0)]))
    results = [json.loads(content) for content in files.values()]
    assert [len(result["eval_case_results"]) for result in results] == [1, 1]
    assert {result["eval_set_id"] for result in results} == {PASSED.eval_set_id}


def test_export_does_not_replace_an_evalset(project: Project, here: Here) -> None:
    evalset = project.evalset(GOOD, path="echo/other.evalset.json")
    before = evalset.read_bytes()
    for form in ("md", "adk"):
        done = here("export", "last", "--format", form, "-o", "echo/other.evalset.json")
        assert (done.returncode, "would replace an evalset" in done.stderr) == (2, True)
    assert evalset.read_bytes() == before


def test_html_has_charts_and_triage_without_markup_from_their_texts() -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, ATTACK)
    passed = MetricResult("response_match_score", "passed", 1.0, 0.8)
    store = feed(
        [started([FAILED, PASSED])],
        case_events(FAILED, "failed", [failed]),
        case_events(PASSED, "passed", [passed]),
        [RunFinished(1.0)],
    )
    answer = store.records[FAILED].answer
    said = Entry(About("late_parcel", ATTACK), Judged("failed", answer), "judge wrong", "passed", ATTACK)
    earlier = Entry(About("on_time"), Judged("passed", "another"), "agent bug", "failed", "of an earlier answer")
    triage = {(FAILED.evalset_file, "late_parcel"): (said,), (PASSED.evalset_file, "on_time"): (earlier,)}
    trend = Trend(tuple(RunRate(ATTACK, "2026", number, 2) for number in (0, 1, 2)), 2)
    content = build_html(store, RunContext(trend, triage))
    page = _page(content)
    assert page.tags <= _TAGS | _DRAWN | _SORTED
    assert page.attributes <= _ATTRIBUTES | _DRAWN_ATTRIBUTES | _SORTED_ATTRIBUTES
    assert content.count(b"<rect") == 2 + 3  # two scores, three runs
    words = " ".join(page.words)
    assert "⚑ judge wrong" in words
    assert "of an earlier answer" not in words
    assert "agrees in 0 of 1" in words
    markdown = build_markdown(store, RunContext(trend, triage)).decode()
    (row,) = [line for line in markdown.splitlines() if "late_parcel" in line and line.startswith("|")]
    assert "⚑ `" in row
    assert row.replace("\\|", "").count("|") == 4


def test_html_has_the_trend_of_the_evalset_and_its_triage(project: Project, here: Here) -> None:
    project.run("run", ".", "--plain")
    report = json.loads((project.root / "report.json").read_text())
    (file,) = {case["evalset_file"] for case in report["cases"]}
    evalset = project.root / file
    entry = Entry(About("bad"), Judged("failed", "of another answer"), "agent bug", "failed", "seen")
    content = changed(triage_path(evalset), None, [entry])
    assert content is not None
    triage_path(evalset).write_bytes(content)
    page = here("export", "last", "--format", "html").stdout
    assert "2 runs of 3 of 4 cases" in page  # one ends in an error
    assert "Agreement of judges with the user" in page
    triage_path(evalset).write_text("{")
    done = here("export", "last", "--format", "md")
    assert done.returncode == 0
    assert "talk.triage.json is not JSON" in done.stderr


class _Counting(http.server.BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed: the page was not seen in a browser")
    return found


def test_clicking_a_column_title_sorts_the_table_in_a_browser(browser: str, tmp_path: Path) -> None:
    scores = {"half": 0.5, "most": 0.9, "none": None, "least": 0.25, "also_half": 0.5}
    events = []
    for name, score in scores.items():
        status: MetricStatus = "not_applicable" if score is None else "failed"
        result = MetricResult("response_match_score", status, score, 1.0, "")
        events.append(case_events(replace(FAILED, eval_id=name), "failed", [result]))
    refs = [replace(FAILED, eval_id=name) for name in scores]
    content = build_html(feed([started(refs)], *events, [RunFinished(1.0)])).decode()
    # Without its policy, so that the test's own script may press the title.
    content = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", content)
    press = "const press = () => document.querySelectorAll('th button')[1].click();"
    order = (
        "document.querySelector('h1').textContent = Array.from(document.querySelectorAll('td a'), a => a.textContent);"
    )
    page = tmp_path / "page.html"
    page.write_text(f"{content}<script>{press} press(); {order} press();</script>", encoding="utf-8")
    dom = _dom(browser, page)
    once = re.findall("<h1>([^<]*)", dom)[0].split(",")
    twice = re.findall(r'<a href="#case-[0-9]+">([^<]*)', dom)
    assert [name.rpartition("/")[2] for name in once] == ["least", "half", "also_half", "most", "none"]
    assert [name.rpartition("/")[2] for name in twice] == ["most", "half", "also_half", "least", "none"]


def test_browser_shows_html_without_other_scripts_or_requests(browser: str, tmp_path: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        dom = _in_browser(browser, server.server_port, tmp_path)
        server.shutdown()
    seen = _Page()
    seen.feed(dom)
    assert "late_parcel" in dom
    assert seen.tags <= _TAGS | _DRAWN | _SORTED
    assert "<title>run</title>" not in dom
    assert " disabled" not in dom, "the page's own script did run"
    assert _Counting.asked == []


def _in_browser(browser: str, port: int, folder: Path) -> str:
    """Open a page full of attacks in a browser. Each attack would send a request to the server at that port."""
    address = f"http://127.0.0.1:{port}"
    text = (
        f"{ATTACK} </summary></details><img src={address}/a><script src={address}/b></script><link rel=stylesheet "
        f"href={address}/c><style>@import url({address}/d)</style><iframe src='data:text/html,<script>1</script>'>"
        f"<meta http-equiv=refresh content='0;url={address}/e'><script>document.title='run'</script> 返金" * 3
    )
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, text)
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed], text=text), [RunFinished(1.0)])
    page = folder / "page.html"
    page.write_bytes(build_html(store, RunContext(Trend((RunRate(text, "", 1, 2), RunRate(text, "", 0, 2)), 2))))
    return _dom(browser, page)


def _dom(browser: str, page: Path) -> str:
    """Return what a browser makes of a page."""
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    command = [browser, *flags.split(), "--disable-component-update", "--disable-sync", "--dump-dom"]
    done = subprocess.run(
        [*command, f"--user-data-dir={page.parent / 'user'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0
    return done.stdout


def test_export_omits_forecasts_made_before_the_run() -> None:
    notices = [Noticed("info", "about 10 judge calls expected", forecast=True), Noticed("warning", "no key is set")]
    page = build_html(feed([started([PASSED])], notices, case_events(PASSED, "passed"), [RunFinished(1.0)])).decode()
    assert "no key is set" in page
    assert "judge calls expected" not in page


def test_export_into_adks_folder_does_not_list_the_run_twice(here: Here, project: Project) -> None:
    before = here("history").stdout
    folder = project.root / "echo/.adk/eval_history"
    folder.mkdir(parents=True)
    assert here("export", "last", "--format", "adk", "-o", str(folder)).returncode == 0
    assert list(folder.iterdir())
    assert here("history").stdout == before


def test_state_files_are_readable_by_their_owner_only(project: Project) -> None:
    files = [file for file in (project.root / ".workbench").rglob("*") if file.is_file()]
    assert any(file.name == "runs.db" for file in files)
    assert [file for file in files if file.stat().st_mode & 0o077] == []
