"""The impact of a batch of changes, with real files but without events of the system."""

from pathlib import Path

import pytest

from tests.run.watch.conftest import ALONE, SHARING, Shop
from workbench.agents.workspace import Workspace, assign_agent, open_workspace
from workbench.files.file_access import replace_content
from workbench.freshness.changes import Batch
from workbench.freshness.watcher import Saved, Watcher


class Watch:
    """A watcher that is told what changed."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.reads = 0
        self.watcher = Watcher(open_workspace(shop.root), self._reopen, lambda: shop.touched)
        self.watcher.update_files()

    def _reopen(self) -> Workspace:
        self.reads += 1
        return open_workspace(self.shop.root, previous=self.watcher.snapshot.workspace)

    def check(self, *names: str, all_files: bool = False) -> Saved | None:
        return self.watcher.check(Batch(frozenset(self.shop.root / name for name in names), all_files))

    def depths(self, *names: str) -> set[str]:
        saved = self.check(*names)
        return set() if saved is None else {key[0] for key in saved.impact.depths}


@pytest.fixture
def watch(shop: Shop) -> Watch:
    return Watch(shop)


def test_save_without_a_change_is_ignored(shop: Shop, watch: Watch) -> None:
    shop.write("desk/agent.py", SHARING)
    assert watch.check("desk/agent.py") is None


def test_change_and_undo_are_two_changes(shop: Shop, watch: Watch) -> None:
    shop.write("desk/agent.py", ALONE)
    assert watch.depths("desk/agent.py") == {"desk/talk.evalset.json"}
    shop.write("desk/agent.py", SHARING)
    assert watch.depths("desk/agent.py") == {"desk/talk.evalset.json"}


def test_code_change_does_not_reread_the_workspace(shop: Shop, watch: Watch) -> None:
    shop.write("shared/words.py", "def reply(message):\n    return 'no'\n")
    assert watch.depths("shared/words.py") == {"desk/talk.evalset.json", "router/talk.evalset.json"}
    assert watch.reads == 0


def test_writes_of_the_workbench_run_nothing(shop: Shop, watch: Watch) -> None:
    path = shop.root / "desk/talk.evalset.json"
    replace_content(path, path.read_bytes().replace(b'"two"', b'"zwei"'))
    saved = watch.check("desk/talk.evalset.json")
    assert saved is not None
    assert saved.impact.depths == {}
    assert [case.eval_id for case in saved.snapshot.workspace.evalsets[0].document.cases] == ["one", "zwei"]
    path.write_bytes(path.read_bytes().replace(b'"zwei"', b'"due"'))
    assert watch.depths("desk/talk.evalset.json") == {"desk/talk.evalset.json"}


def test_cases_run_once_a_config_broken_from_the_start_is_fixed(shop: Shop) -> None:
    shop.write("desk/test_config.json", '{"criteria": {"response_match_scor": 0.5}}')
    watch = Watch(shop)
    shop.write("desk/test_config.json", '{"criteria": {"response_match_score": 0.5}}')
    saved = watch.check("desk/test_config.json")
    assert saved is not None
    assert {(key[0], depth) for key, depth in saved.impact.depths.items()} == {("desk/talk.evalset.json", "run")}


def test_syntax_error_is_reported_with_its_line_and_blocks_its_agents(shop: Shop, watch: Watch) -> None:
    shop.write("shared/words.py", "def reply(message):\n    return (\n")
    saved = watch.check("shared/words.py")
    assert saved is not None
    assert [(fault.path, fault.line) for fault in saved.faults] == [(shop.root / "shared/words.py", 2)]
    assert saved.blocked == shop.keys(["desk", "router"]) == set(saved.impact.depths)
    shop.write("greeter/agent.py", SHARING)
    other = watch.check("greeter/agent.py")
    assert other is not None
    assert shop.keys(["greeter"]).isdisjoint(other.blocked)
    assert other.blocked == shop.keys(["desk", "router"]), "it is still broken"
    shop.write("shared/words.py", "def reply(message):\n    return ''\n")
    mended = watch.check("shared/words.py")
    assert mended is not None
    assert (mended.blocked, mended.faults) == (frozenset(), ())


def test_repaired_evalset_runs_only_changed_cases(shop: Shop, watch: Watch) -> None:
    path = shop.root / "desk/talk.evalset.json"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    saved = watch.check("desk/talk.evalset.json")
    assert saved is not None
    assert (saved.impact.depths, saved.impact.gone) == ({}, set()), "what is stale stays so"
    path.write_text(whole.replace('"text": "two"', '"text": "zwei"'))
    mended = watch.check("desk/talk.evalset.json")
    assert mended is not None
    assert mended.impact.depths == dict.fromkeys(shop.keys(["desk"], "two"), "run")


def test_repaired_config_is_compared_with_its_last_valid_version(shop: Shop, watch: Watch) -> None:
    shop.criteria("desk", response_match_score=0.5, final_response_match_v2=0.5)
    watch.check("desk/test_config.json")
    shop.write("desk/test_config.json", "{")
    saved = watch.check("desk/test_config.json")
    assert saved is not None
    assert saved.impact.depths == {}
    shop.criteria("desk", response_match_score=0.5, final_response_match_v2=0.9)
    mended = watch.check("desk/test_config.json")
    assert mended is not None
    assert set(mended.impact.depths.values()) == {"decide"}, "no judge is asked again"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("desk/talk.evalset.json", "{"),
        ("desk/test_config.json", "{"),
        ("desk/test_config.json", '{"criteria": {"response_match_scor": 0.5}}'),
    ],
)
def test_saves_wait_while_evalset_or_config_is_broken(shop: Shop, watch: Watch, name: str, content: str) -> None:
    whole = (shop.root / "desk/talk.evalset.json").read_text()
    shop.criteria("desk", response_match_score=0.5)
    watch.check("desk/test_config.json")
    shop.write(name, content)
    wrong = watch.check(name)
    assert wrong is not None
    assert wrong.impact.depths == {}
    assert wrong.blocked == shop.keys(["desk"])
    assert [fault.path for fault in watch.watcher.broken] == [shop.root / name]
    assert [fault.path for fault in wrong.faults] == [shop.root / name]
    shop.write("shared/words.py", "def reply(message):\n    return ''\n")
    meanwhile = watch.check("shared/words.py")
    assert meanwhile is not None
    assert set(meanwhile.impact.depths) == shop.keys(["desk", "router"])
    assert meanwhile.blocked == shop.keys(["desk"]), "the other agent's cases run"
    assert [fault.path for fault in meanwhile.faults] == [shop.root / name]
    shop.write("greeter/agent.py", SHARING)
    other = watch.check("greeter/agent.py")
    assert other is not None
    assert other.faults == (), "it has nothing to do with that"
    shop.write("desk/talk.evalset.json", whole)
    shop.criteria("desk", response_match_score=0.5)
    mended = watch.check(name)
    assert mended is not None
    assert (mended.impact.depths, mended.blocked, mended.faults) == ({}, frozenset(), ())


def test_file_read_through_a_link_is_watched_at_its_place(shop: Shop, tmp_path: Path) -> None:
    beside = tmp_path.with_name(tmp_path.name + "-beside")
    beside.mkdir()
    for folder in (shop.root / "texts", beside):
        (folder / "prompt.txt").parent.mkdir(exist_ok=True)
        (folder / "prompt.txt").write_text("old")
    (shop.root / "desk/prompt.txt").symlink_to(beside / "prompt.txt")
    (shop.root / "linked").symlink_to("texts")
    shop.touched[shop.root / "desk"].files.add(shop.root / "desk/prompt.txt")
    shop.touched[shop.root / "greeter"].files.add(shop.root / "linked/prompt.txt")
    watch = Watch(shop)
    folders = watch.watcher.changes._folders()
    assert beside in folders
    assert shop.root / "texts" in folders
    assert shop.root / "linked" not in folders, "the system would tell by one of the two names"
    (beside / "prompt.txt").write_text("new")
    saved = watch.watcher.check(Batch(frozenset({beside / "prompt.txt"})))
    assert saved is not None
    assert set(saved.impact.depths) == shop.keys(["desk"])
    shop.write("texts/prompt.txt", "new")
    assert watch.depths("texts/prompt.txt") == {"greeter/talk.evalset.json"}
    (shop.root / "desk/prompt.txt").unlink()
    (shop.root / "desk/prompt.txt").symlink_to("../texts/prompt.txt")
    assert watch.depths("desk/prompt.txt") == set(), "it says the same"
    shop.write("texts/prompt.txt", "newer")
    assert watch.depths("texts/prompt.txt") == {"desk/talk.evalset.json", "greeter/talk.evalset.json"}


def test_deleted_project_is_reported_and_may_come_back(shop: Shop, watch: Watch, tmp_path: Path) -> None:
    away = tmp_path.parent / (tmp_path.name + "-away")
    shop.root.rename(away)
    saved = watch.check("desk/agent.py", "desk/talk.evalset.json", all_files=True)
    assert saved is not None
    assert "does not exist" in saved.trouble
    away.rename(shop.root)
    back = watch.check(all_files=True)
    assert back is not None
    assert back.trouble == ""
    assert not back.impact.gone
    assert back.impact.depths == {}, "nothing in it is other than it was"
    shop.root.rename(away)
    assert watch.check(all_files=True) is not None
    assert watch.check(all_files=True) is None, "it is said once"
    (away / "greeter/agent.py").write_text(SHARING)
    away.rename(shop.root)
    changed = watch.check("desk/agent.py")
    assert changed is not None
    assert set(changed.impact.depths) == shop.keys(["greeter"]), "nobody told of it"


def test_all_known_files_are_checked_after_sleep(shop: Shop, watch: Watch) -> None:
    shop.write("greeter/agent.py", SHARING)
    saved = watch.check(all_files=True)
    assert saved is not None
    assert set(saved.impact.depths) == shop.keys(["greeter"])


def test_only_a_new_evalset_runs_after_sleep(shop: Shop, watch: Watch) -> None:
    shop.touched.clear()  # No agent has run: what their sources name would count.
    assert watch.check(all_files=True) is None
    shop.write("greeter/more.evalset.json", {"eval_set_id": "more", "eval_cases": []})
    shop.write("desk/more/new.evalset.json", {"eval_set_id": "new", "eval_cases": [{"eval_id": "a"}]})
    saved = watch.check(all_files=True)
    assert saved is not None
    assert {entry.relative for entry in saved.snapshot.workspace.evalsets} >= {
        "greeter/more.evalset.json",
        "desk/more/new.evalset.json",
    }
    assert {key[0] for key in saved.impact.depths} <= {"desk/more/new.evalset.json"}


def test_file_contents_before_and_after_a_save_are_kept(shop: Shop, watch: Watch) -> None:
    contents, path = watch.watcher.contents, shop.root / "desk/agent.py"
    before = contents.moment
    shop.write("desk/agent.py", ALONE)
    watch.check("desk/agent.py")
    assert contents.text(before[path]) == SHARING
    assert contents.text(contents.moment[path]) == ALONE


def test_only_changed_evalsets_are_opened_again(shop: Shop, watch: Watch) -> None:
    before = {entry.relative: entry.document for entry in watch.watcher.snapshot.workspace.evalsets}
    path = shop.root / "desk/talk.evalset.json"
    path.write_bytes(path.read_bytes().replace(b'"two"', b'"zwei"'))
    watch.check("desk/talk.evalset.json")
    after = {entry.relative: entry.document for entry in watch.watcher.snapshot.workspace.evalsets}
    assert {name for name in after if after[name] is not before[name]} == {"desk/talk.evalset.json"}


def test_watched_files_are_listed_with_reasons(watch: Watch, shop: Shop) -> None:
    listed = dict(watch.watcher.watched()["desk"])
    assert listed[shop.root / "shared/words.py"] == "read by the agent"
    assert listed[shop.root / "desk/talk.evalset.json"] == "evalset"


def test_missing_agent_is_reported_once_and_its_cases_wait(shop: Shop, watch: Watch) -> None:
    source = (shop.root / "desk/agent.py").read_text()
    (shop.root / "desk/agent.py").unlink()
    saved = watch.check("desk/agent.py")
    assert saved is not None
    assert {key[0] for key in saved.blocked} == {"desk/talk.evalset.json"}
    assert {key[0] for key in saved.impact.depths} == {"desk/talk.evalset.json"}
    assert [fault.path.name for fault in saved.faults] == ["talk.evalset.json"]
    assert "its agent desk is gone" in saved.faults[0].message
    (entry,) = (one for one in saved.snapshot.workspace.evalsets if one.relative == "desk/talk.evalset.json")
    assert entry.agent is None
    shop.write("shared/words.py", "def reply(message):\n    return 'no'\n")
    later = watch.check("shared/words.py")
    assert later is not None
    assert {key[0] for key in later.impact.depths} == {"router/talk.evalset.json"}
    assert later.faults == ()
    shop.write("desk/agent.py", source)
    back = watch.check("desk/agent.py")
    assert back is not None
    assert back.blocked == frozenset()
    assert {key[0] for key in back.impact.depths} == {"desk/talk.evalset.json"}


def test_choosing_another_agent_unblocks_cases_of_a_missing_agent(shop: Shop, watch: Watch) -> None:
    (shop.root / "desk/agent.py").unlink()
    lost = watch.check("desk/agent.py")
    assert lost is not None
    router = next(agent for agent in lost.snapshot.workspace.agents if agent.name == "router")
    watch.watcher.adopt_owners(assign_agent(lost.snapshot.workspace, router))
    shop.write("shared/words.py", "def reply(message):\n    return 'no'\n")
    later = watch.check("shared/words.py")
    assert later is not None
    assert later.blocked == frozenset()
