"""Records of stored cases: complete, unfinished or missing."""

import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.cli.stores import ANSWER_PASSED, FAILED, PASSED, case_events
from tests.store.history.test_stored_runs import keep_run
from tests.ui.conftest import MakeWorkspace, case_json
from workbench.agents.workspace import Workspace, open_workspace
from workbench.files.criteria import Criterion
from workbench.files.evalset import open_evalset
from workbench.freshness.staleness import stale_cases
from workbench.store.details import end_all, read_records
from workbench.store.inputs import Bundle
from workbench.ui.session.recall import Recalled, recall


def recalled(workspace: Workspace) -> list[Recalled]:
    return list(recall(workspace.root / ".workbench", workspace))


def stale(workspace: Workspace) -> set[str]:
    return {eval_id for _, eval_id in stale_cases([part.latest for part in recalled(workspace)], workspace)}


def test_unfinished_case_of_a_stored_run_counts_as_cancelled(tmp_path: Path) -> None:
    events = [*case_events(PASSED, "passed", [ANSWER_PASSED]), *case_events(FAILED, "failed")[:2]]
    file = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", events, ended=False)
    records = read_records(file, {PASSED, FAILED})
    assert [records[ref].state for ref in (PASSED, FAILED)] == ["passed", "running"]
    shown = end_all(records)
    assert [shown[ref].state for ref in (PASSED, FAILED)] == ["passed", "cancelled"]
    error = shown[FAILED].error
    assert error is not None
    assert "while this case was running" in error.message
    other = keep_run(tmp_path, "2026-11-21T10-00-00-aaaa", [], ended=False)
    never = end_all(read_records(other, {FAILED}))[FAILED].error
    assert never is not None
    assert "before this case started" in never.message


def test_newest_verdicts_are_restored_with_their_changed_inputs(tmp_path: Path, make_workspace: MakeWorkspace) -> None:
    from tests.ui.history.test_history_screen import keep

    workspace = make_workspace()
    assert not recalled(workspace)
    digest = blake2b((workspace.root / "order_desk/agent.py").read_bytes(), digest_size=16).hexdigest()
    keep(workspace, "2026-01-01T10-00-00-aaaa", {"on_time": "passed", "late_parcel": "passed"}, digest)
    keep(workspace, "2026-01-02T10-00-00-bbbb", {"late_parcel": "failed"}, digest)
    assert [{ref.eval_id: record.state for ref, record in part.records.items()} for part in recalled(workspace)] == [
        {"late_parcel": "failed"},
        {"on_time": "passed"},
    ]
    assert not stale(workspace)
    (workspace.root / "order_desk/agent.py").write_text("root_agent = 1\n", encoding="utf-8")
    assert stale(workspace) == {"on_time", "late_parcel"}


def test_stored_cases_are_read_for_a_comparison_only_if_they_changed(
    make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.ui.history.test_history_screen import keep

    names = [f"case_{number}" for number in range(4)]
    data: dict[str, Any] = {"eval_set_id": "refunds", "eval_cases": [case_json(name) for name in names]}
    for case, name in zip(data["eval_cases"], names, strict=True):
        case["session_input"] = {"app_name": "x", "user_id": name, "state": {}}
    workspace = make_workspace({"order_desk": {"refunds": json.dumps(data)}})
    digest = blake2b((workspace.root / "order_desk/agent.py").read_bytes(), digest_size=16).hexdigest()
    keep(workspace, "2026-01-01T10-00-00-aaaa", dict.fromkeys(names, "passed"), digest)
    read = Mock(side_effect=Bundle.from_json)
    monkeypatch.setattr(Bundle, "from_json", read)
    assert not stale(workspace)
    of_cases = [call for call in read.call_args_list if "expected" in call.args[0][1]]
    assert len(of_cases) == 1, "only of the first case, with what the others share"
    (entry,) = workspace.evalsets
    data["eval_cases"][-1]["session_input"]["state"] = {"mood": "calm"}
    entry.file.write_text(json.dumps(data), encoding="utf-8")
    assert stale(replace(workspace, evalsets=(replace(entry, document=open_evalset(entry.file)),))) == {names[-1]}


def test_changed_judge_function_makes_a_restored_verdict_stale(make_workspace: MakeWorkspace) -> None:
    from tests.ui.history.test_history_screen import keep

    root = make_workspace().root
    judges = root / "judges.py"
    judges.write_text("def strict(question): ...\n", encoding="utf-8")
    options = {"threshold": 0.5, "judge_model_options": {"judge_model": "python:judges:strict"}}
    config = {"criteria": {"final_response_match_v2": options}}
    (root / "order_desk/test_config.json").write_text(json.dumps(config), encoding="utf-8")
    opened = open_workspace(root)
    workspace = replace(opened, evalsets=tuple(one for one in opened.evalsets if one.eval_set_id == "refunds"))
    digest = blake2b((root / "order_desk/agent.py").read_bytes(), digest_size=16).hexdigest()
    keep(workspace, "2026-01-01T10-00-00-aaaa", {"on_time": "passed", "late_parcel": "passed"}, digest)
    judges.touch()
    assert not stale(workspace)
    judges.write_text("def strict(question): return 'invalid'\n", encoding="utf-8")
    assert stale(workspace) == {"on_time", "late_parcel"}


def test_changed_custom_metric_makes_a_restored_verdict_stale(make_workspace: MakeWorkspace) -> None:
    from tests.ui.history.test_history_screen import keep

    workspace = make_workspace()
    digest = blake2b((workspace.root / "order_desk/agent.py").read_bytes(), digest_size=16).hexdigest()
    keep(workspace, "2026-01-01T10-00-00-aaaa", {"on_time": "passed"}, digest)
    (entry, *others) = workspace.evalsets
    brief = Criterion("brief", 0.5, 0.5, {})
    code = {"brief": {"code_config": {"name": "x.y.brief"}}}
    config = entry.criteria.config
    custom = replace(config, criteria=(*config.criteria, brief), custom_metrics=code)
    entry = replace(entry, criteria=replace(entry.criteria, config=custom))
    assert stale(replace(workspace, evalsets=(entry, *others))) == {"on_time"}


def test_verdict_of_a_renamed_case_is_not_restored(tmp_path: Path, make_workspace: MakeWorkspace) -> None:
    from tests.ui.history.test_history_screen import keep

    before = make_workspace({"order_desk": {"refunds": ["on_time", "late_parcel"]}})
    keep(before, "2026-01-02T10-00-00-bbbb", {"on_time": "passed", "late_parcel": "passed"}, "")
    workspace = make_workspace({"order_desk": {"refunds": ["on_time", "renamed_since"]}})
    (found,) = recalled(workspace)
    assert [ref.eval_id for ref in found.records] == ["on_time"]
