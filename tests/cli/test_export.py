"""`export`: each form is read back by what reads it, and hostile text does nothing in any."""

import csv
import io
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.projects import BAD, GOOD, RAISES, Project, case
from tests.cli.stores import FAILED, PASSED, all_statuses, case_events, feed, started
from tests.hostile import HOSTILE
from workbench.cli.export_adk import build_adk
from workbench.cli.export_html import build_html
from workbench.cli.export_tables import build_csv, build_markdown, code_span
from workbench.events import MetricResult, RunFinished

ATTACK = '</pre><script>alert(1)</script><img src=x onerror=alert(1)> " onload="x" \x1b[31m \ud800 `|` @team =1+1'
_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "p", "details", "summary", "b", "i", "pre"),
    *("span", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "open"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _page(content: bytes) -> _Page:
    page = _Page()
    page.feed(content.decode())
    return page


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.evalset(GOOD, BAD, RAISES, case("hostile", ATTACK.replace("\ud800", ""), answer="no"))
    project.run("run", ".", "--plain", "--json", "report.json")
    return project


@pytest.mark.parametrize("text", [ATTACK, *HOSTILE])
def test_hostile_text_is_only_text_in_the_page(text: str) -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, text, {"note": text})
    store = feed(
        [started([PASSED, FAILED], text)], case_events(FAILED, "failed", [failed], text=text), [RunFinished(1.0)]
    )
    content = build_html(store)
    page = _page(content)
    assert page.tags <= _TAGS
    assert page.attributes <= _ATTRIBUTES
    assert b"\x1b" not in content
    assert b"default-src 'none'" in content
    if "://" not in text:
        assert b"://" not in content


def test_the_page_has_every_case_and_opens_what_did_not_pass() -> None:
    store = all_statuses()
    content = build_html(store).decode()
    assert content.count("<details") == 7
    assert content.count("<details open") == 6
    assert content.index("late_parcel") < content.index("needs_a_key")
    assert "<td>tool_trajectory_avg_score<td>0<td>1<td>0<td>0.500" in content


def test_markdown_keeps_its_table_whatever_a_reason_holds() -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, ATTACK)
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed]), [RunFinished(1.0)])
    text = build_markdown(store).decode()
    (row,) = [line for line in text.splitlines() if "late_parcel" in line]
    assert "\\|" in row
    assert row.replace("\\|", "").count("|") == 4
    assert code_span("a `` b`") == "``` a `` b` ```"


def test_a_spreadsheet_computes_nothing() -> None:
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, "=cmd|' /C calc'!A0")
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed]), [RunFinished(1.0)])
    (row,) = csv.DictReader(io.StringIO(build_csv(store).decode()))
    assert row["reason"] == "'=cmd|' /C calc'!A0"
    assert (row["score"], row["threshold"], row["case_status"]) == ("0.5", "0.8", "failed")


def test_adks_own_loader_reads_its_file(project: Project, tmp_path: Path) -> None:
    adk = pytest.importorskip("google.adk.evaluation.local_eval_set_results_manager")
    folder = tmp_path / "agents/echo/.adk/eval_history"
    folder.mkdir(parents=True)
    assert project.run("export", "last", "--format", "adk", "-o", str(folder)).returncode == 0
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


def test_each_form_from_the_shell(project: Project) -> None:
    report = json.loads((project.root / "report.json").read_text())
    assert json.loads(project.run("export", "last", "--format", "json").stdout) == report
    page = project.run("export", "last", "--format", "html", "-o", "page.html")
    assert (page.returncode, page.stdout) == (0, "")
    assert _page((project.root / "page.html").read_bytes()).tags <= _TAGS
    suites = ElementTree.fromstring(project.run("export", "last", "--format", "junit").stdout.encode())
    assert suites.get("tests") == "4"
    assert "4 cases" in project.run("export", "last", "--format", "md").stdout
    rows = list(csv.DictReader(io.StringIO(project.run("export", "last", "--format", "csv").stdout)))
    assert {row["eval_id"] for row in rows} == {"good", "bad", "raises", "hostile"}


def test_a_report_exports_as_the_run_does(project: Project) -> None:
    for form in ("json", "csv", "md"):
        kept = project.run("export", "last", "--format", form).stdout
        assert project.run("export", "report.json", "--format", form).stdout == kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["last"], "--format"),
        (["--format", "md"], "not 0"),
        (["9999", "--format", "md"], "no run 9999"),
        (["last", "--format", "pdf"], "pdf"),
        (["last", "--format", "md", "-o", "no/such/folder.md"], "No such file"),
    ],
    ids=" ".join,
)
def test_what_is_refused(project: Project, words: list[str], said: str) -> None:
    done = project.run("export", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_browser_shows_the_page_and_runs_nothing(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    failed = MetricResult("response_match_score", "failed", 0.5, 0.8, "<script>document.title='run'</script>")
    store = feed([started([FAILED])], case_events(FAILED, "failed", [failed], text=ATTACK), [RunFinished(1.0)])
    page = tmp_path / "page.html"
    page.write_bytes(build_html(store))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "late_parcel" in done.stdout
    assert "<title>run</title>" not in done.stdout
