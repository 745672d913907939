"""The comment on two compared runs: verdict, figures, groups by cause and links. Foreign text stays text."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.results.runs import run
from workbench.exporting.tables import comparison_markdown
from workbench.results.gate import gate, gate_text
from workbench.results.run_comparison import compare
from workbench.store.history.summary import Summary

GITHUB = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "me/bots",
    "GITHUB_RUN_ID": "77",
    "GITHUB_SHA": "c" * 40,
    "GITHUB_WORKSPACE": "/checkout",
}
GITLAB = {
    "CI_PROJECT_URL": "https://gitlab.com/me/bots",
    "CI_JOB_URL": "https://gitlab.com/me/bots/-/jobs/77",
    "CI_COMMIT_SHA": "c" * 40,
    "CI_PROJECT_DIR": "/checkout",
}


def comment(before: Summary, after: Summary, environ: Mapping[str, str] | None = None, *, is_gate: bool = True) -> str:
    found = compare(before, after, Path("/nowhere"))
    weighed = gate(found, Path("/nowhere"))
    return comparison_markdown(found, weighed, gate_text(weighed) if is_gate else None, environ or {}).decode()


def mixed(lost: Sequence[str], number: int = 9) -> tuple[Summary, Summary]:
    same = {f"steady {at}": ["passed"] for at in range(number)}
    return run({**same, **{name: ["passed"] * 3 for name in lost}}), run(
        {**same, **{name: ["failed"] * 3 for name in lost}}
    )


def test_lost_cases_are_grouped_by_cause() -> None:
    before, after = mixed([f"lost {at}" for at in range(6)])
    text = comment(before, after)
    assert text.splitlines()[:2] == [
        "<!-- agent-workbench -->",
        "### agent-workbench: ❌ the pass rate fell by 40.0 points, and chance does not explain it (p = 0.032)",
    ]
    assert "\n| pass rate of 15 cases | 100.0% | 60.0% | −40.0 points [" in text
    (row,) = (line for line in text.splitlines() if line.startswith("| `desk/refunds/lost 0`"))
    names, why, changed = [cell.strip() for cell in row.strip("|").split("|")]
    assert names.count("3/3 → 0/3, chance alone: 5%") == 6
    assert (why, changed) == ("`answer differs`", "")


@pytest.mark.parametrize(
    ("environ", "job", "file"),
    [
        (GITHUB, "https://github.com/me/bots/actions/runs/77", "https://github.com/me/bots/blob/"),
        (GITLAB, "https://gitlab.com/me/bots/-/jobs/77", "https://gitlab.com/me/bots/-/blob/"),
    ],
)
def test_links_lead_to_the_job_the_commits_and_the_evalsets(environ: Mapping[str, str], job: str, file: str) -> None:
    before, after = mixed(["lost"])
    after.root = "/checkout/eval tests"
    after.git = {"commit": "d" * 40, "dirty": False}
    text = comment(before, after, environ)
    assert text.endswith(f"\n[Log and reports of this job]({job})\n")
    assert f"[`desk/refunds/lost`]({file}{'c' * 40}/eval%20tests/desk/refunds.evalset.json)" in text
    assert f"]({file.replace('blob', 'commit')}{'d' * 40})" in text
    assert "](" not in comment(before, after)
    # The reports come from another folder: a link to a file would lead nowhere.
    after.root = "/elsewhere"
    assert "evalset.json)" not in comment(before, after, environ)


@pytest.mark.parametrize(
    "name", ["[click](https://evil.example)", "a|b|c", "`x` @everyone", "<script>", "two\nlines", "<!-- x"]
)
def test_foreign_text_appears_only_in_code_spans(name: str) -> None:
    for text in (comment(*mixed([name])), comment(run({name: ["passed"]}), run({name: ["error"]}))):
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text.removeprefix("<!-- agent-workbench -->"))
        assert not set("@<[`") & set(re.sub(r"<br>|< 0.001|\[[−+\d.,]+\]", "", outside))
        for line in text.splitlines():
            if line.startswith("|"):
                assert len(re.findall(r"(?<!\\)\|", line)) in (3, 4, 5), line


def test_malformed_urls_in_the_environment_make_no_link() -> None:
    text = comment(*mixed(["lost"]), {**GITLAB, "CI_JOB_URL": "javascript:alert(1)"})
    assert "\nLog and reports of this job\n" in text


def test_thousands_of_lost_cases_fit_into_a_comment() -> None:
    before, after = mixed([f"{at} {'long' * 40}" for at in range(2_000)])
    text = comment(before, after, GITHUB)
    assert len(text) <= 60_000
    assert re.search(r"and 1,9\d\d more", text)


def test_comment_without_a_gate_starts_with_the_change() -> None:
    text = comment(*mixed(["lost"]), is_gate=False)
    assert "### agent-workbench: pass rate −10.0 points [" in text


def test_new_errors_and_cases_left_out_are_named() -> None:
    before = run({"one": ["passed"], "two": ["passed"], "three": ["passed"]})
    after = run({"one": ["error"], "two": ["cancelled"], "three": ["passed"]})
    text = comment(before, after)
    assert "| 1 case with a new error | why |\n|---|---|\n| `desk/refunds/one` | `agent_raised: it broke` |" in text
    assert "\nleft out: 1 error, 1 cancelled; 2 cases have no verdict on one side\n" in text
    assert "\nNot compared: `desk/refunds/one`, `desk/refunds/two`\n" in text
    assert "| error | 0 | 1 | +1 |" in text


def test_cases_that_only_one_run_has_are_named_once() -> None:
    text = comment(
        run({"same": ["passed"], "gone": ["failed"] * 3}), run({"same": ["passed"] * 3, "new": ["passed"] * 3})
    )
    assert "✅ 1 case passed as often as before" in text
    assert "\nOnly in A: `desk/refunds/gone`\n" in text
    assert "\nOnly in B: `desk/refunds/new`\n" in text
