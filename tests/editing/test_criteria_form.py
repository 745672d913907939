"""The criteria form has every field of every criterion, and a change touches nothing else."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria.registry import check_criteria, descriptions
from workbench.editing.case_edit import moved
from workbench.editing.criteria_change import (
    PRESETS,
    ConfigDraft,
    ConfigRejectedError,
    ValueRefusedError,
    changed_names,
    cost,
    draft_of,
    edit_of,
    guide,
    merged,
    needs,
    new_draft,
    new_faults,
    next_choice,
    open_config,
    read_typed,
    stepped,
    with_criterion,
    with_preset,
    with_rubric,
    with_value,
    without,
)
from workbench.editing.criteria_form import FormRow, metric_rows, rows_of
from workbench.editing.saving import ChangedOnDiskError, Saver
from workbench.files.criteria import parse_config
from workbench.files.json_text.json_edit import EditError
from workbench.files.metrics_config import MetricsConfig
from workbench.files.schema import SIMULATORS
from workbench.judges.base import JudgeModelOptions

TEXT = """{
\t"mine" : [1,2 , 3],
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0 , "matchType": "EXACT", "note": "ü"},
        "response_match_score":   0.8,
        "rubric_based_tool_use_quality_v1": {"threshold": 0.5, "rubrics": [
            {"rubricId": "a", "rubricContent": {"textProperty": "見積もりを先に出す"}},
            {"rubricId": "b", "rubricContent": {"textProperty": "two"}, "weight": 3}
        ]}
    }   ,
    "last": null
}
"""
FILE = Path("test_config.json")


def draft(text: str = TEXT) -> ConfigDraft:
    return draft_of(FILE, text.encode())


def row(content: Any, name: str, criterion: str = "") -> FormRow:
    return next(one for one in rows_of(content) if one.field.name == name and one.criterion == criterion)


def after(text: str, *changes: tuple[str, str, Any]) -> str:
    one = draft(text)
    content = one.content
    for criterion, name, value in changes:
        content = with_value(content, row(content, name, criterion).location, value)
    return one.bytes_of(content).decode()


@pytest.mark.parametrize(
    "info", [info for info in descriptions().values() if not info.informational], ids=lambda info: str(info.name)
)
def test_form_has_every_field_of_a_criterion(info: Any) -> None:
    rows = rows_of({"criteria": {info.name: 0.5}})
    names = {one.field.name for one in rows if one.criterion == info.name}
    wanted = {"threshold"} | (set(info.option_names) - {"judge_model_options"})
    if "judge_model_options" in info.option_names:
        wanted |= set(JudgeModelOptions.model_fields)
    if info.name == "hallucinations_v1":
        wanted.discard("num_samples")  # it has no effect there
    assert names == wanted


def test_type_of_the_simulated_user_cycles_through_all_types() -> None:
    shown = [one for one in rows_of({"criteria": {}}) if one.field.name == "type"]
    assert [next_choice(one) for one in shown] == ["llm_audio"]
    chosen = [one for one in rows_of({"user_simulator_config": {"type": "llm_audio"}}) if one.field.name == "type"]
    assert [next_choice(one) for one in chosen] == ["llm_backed"]


@pytest.mark.parametrize("kind", SIMULATORS)
def test_form_has_every_field_of_the_simulated_user(kind: str) -> None:
    rows = rows_of({"criteria": {}, "userSimulatorConfig": {"type": kind, "maxAllowedInvocations": 5, "odd": 1}})
    inside = [one for one in rows if one.location[:1] == ("userSimulatorConfig",) and one.depth]
    assert {one.field.name for one in inside if one.kind != "kept"} == set(SIMULATORS[kind].model_fields)
    assert [one.field.name for one in inside if one.kind == "kept"] == ["odd"]
    assert next(one for one in inside if one.field.name == "max_allowed_invocations").value == 5
    # What is not there yet would be written in the spelling of what is.
    assert ("userSimulatorConfig", "includeFunctionCalls") in {one.location for one in inside}


def test_rubric_has_a_row_for_each_part() -> None:
    rows = [one for one in rows_of(draft().content) if one.depth >= 2]
    assert [(one.field.name, one.value) for one in rows if one.unit[-1] == 1] == [
        ("text", "two"),
        ("id", "b"),
        ("type", None),
        ("description", None),
        ("weight", 3),
    ]


def test_help_and_limits_of_fields_come_from_their_models() -> None:
    rows = rows_of({"criteria": {name: 0.5 for name, info in descriptions().items() if not info.informational}})
    assert [one.field.name for one in [*rows, *rows_of(draft().content)] if one.depth and not one.field.help] == []
    helps = {one.field.name: one.field.help for one in rows}
    assert helps["num_samples"].startswith(str(JudgeModelOptions.model_fields["num_samples"].description))
    assert helps["num_samples"].endswith(" At least 1.")
    one = options_of("limits", tokens=1)["tokens"]
    assert [stepped(one, -1), stepped(replace(one, value=0), -1)] == [0, 0], "a limit may be 0"
    samples = row({"criteria": {"final_response_match_v2": 0.8}}, "num_samples", "final_response_match_v2")
    assert stepped(replace(samples, value=1, given=True), -1) == 1


def test_unknown_keys_are_shown_and_kept() -> None:
    kept = {one.field.name: one.value for one in rows_of(draft().content) if one.kind == "kept"}
    assert kept == {"note": "ü", "weight": 3, "mine": [1, 2, 3], "last": None}
    own = {"criteria": {"mine": {"threshold": 1, "match_type": 7}}, "custom_metrics": {"mine": {"code_config": {}}}}
    assert [one.field.name for one in rows_of(own) if one.kind == "kept"] == ["match_type", "custom_metrics"]


def test_threshold_edit_changes_one_value() -> None:
    assert after(TEXT, ("response_match_score", "threshold", 0.65)) == TEXT.replace("   0.8,", "   0.65,")
    assert after(TEXT, ("tool_trajectory_avg_score", "threshold", 0.5)) == TEXT.replace("1.0 ,", "0.5 ,")


def test_spelling_of_the_file_is_kept() -> None:
    one = after(TEXT, ("tool_trajectory_avg_score", "match_type", "IN_ORDER"))
    assert one == TEXT.replace('"matchType": "EXACT"', '"matchType": "IN_ORDER"')
    two = json.loads(after(TEXT, ("tool_trajectory_avg_score", "ignore_args", True)))
    assert two["criteria"]["tool_trajectory_avg_score"]["ignoreArgs"] is True


def test_option_turns_a_number_into_an_object_and_back() -> None:
    text = '{"criteria": {"final_response_match_v2": 0.8}}'
    one = draft(text)
    judge = row(one.content, "judge_model", "final_response_match_v2")
    content = with_value(one.content, judge.location, "gemini-2.5-pro")
    assert content["criteria"]["final_response_match_v2"] == {
        "threshold": 0.8,
        "judge_model_options": {"judge_model": "gemini-2.5-pro"},
    }
    assert one.bytes_of(without(content, judge.location)).decode() == text


def test_rubrics_can_be_added_moved_and_removed() -> None:
    name = "rubric_based_tool_use_quality_v1"
    content, place = with_rubric(draft().content, name, 0)
    rubrics = content["criteria"][name]["rubrics"]
    assert place[-1] == 1
    assert rubrics[1]["rubricId"] == "rubric_3"
    assert rubrics[1]["rubricContent"] == {"textProperty": ""}
    assert rubrics[1]["type"] == "TOOL_USE_QUALITY"
    content, place = moved(content, place, -1)
    assert place[-1] == 0
    assert moved(content, place, -1) == (content, place)
    content = without(content, place)
    assert content == draft().content


def test_rubric_can_be_added_beside_one_whose_id_is_not_a_text() -> None:
    name = "rubric_based_tool_use_quality_v1"
    one = draft(json.dumps({"criteria": {name: {"threshold": 0.5, "rubrics": [{"rubric_id": ["q"]}]}}}))
    content, place = with_rubric(one.content, name)
    assert content["criteria"][name]["rubrics"][place[-1]]["rubric_id"] == "rubric_2"
    assert new_faults(one, content) == ()


def test_moving_a_criterion_keeps_the_others() -> None:
    content, _ = moved(draft().content, ("criteria", "response_match_score"), -1)
    assert list(content["criteria"])[:2] == ["response_match_score", "tool_trajectory_avg_score"]
    before, after = draft().before, draft().bytes_of(content)
    assert list(json.loads(after)["criteria"].items()) == list(content["criteria"].items())
    first = b'"tool_trajectory_avg_score": {"threshold": 1.0 , "matchType": "EXACT", "note": "\xc3\xbc"}'
    second = b'"response_match_score":   0.8'
    assert before is not None
    assert after == before.replace(second, b"?").replace(first, second).replace(b"?", first)


def test_steps_stay_on_the_grid_and_in_the_score_range() -> None:
    def at(value: Any, step: float, name: str = "safety_v1") -> Any:
        return stepped(row({"criteria": {name: value}}, "threshold", name), step)

    assert [at(0.8, 0.05), at(0.8, -0.05), at(0.83, 0.05), at(0.83, -0.05)] == [0.85, 0.75, 0.85, 0.8]
    assert [at(0.8, 0.01), at(0.8, -0.01)] == [0.81, 0.79]
    assert [at(1.0, 0.05), at(0.99, 0.05), at(0.02, -0.05), at(0.0, -0.05)] == [1.0, 1.0, 0.0, 0.0]
    assert at(1.0, 0.05, "response_evaluation_score") == 1.05
    assert [at("many", 0.05), at(1e308, 0.05), at(-1e308, -0.05)] == [0.85, 0.85, 0.75]


@given(st.floats(0, 1), st.sampled_from([0.05, 0.01]))
def test_steps_never_move_a_value_in_the_wrong_direction(value: float, step: float) -> None:
    one = row({"criteria": {"safety_v1": value}}, "threshold", "safety_v1")
    assert stepped(one, step) >= value - 1e-6
    assert stepped(one, -step) <= value + 1e-6


def test_next_choice_cycles_through_all_values() -> None:
    name = "tool_trajectory_avg_score"
    content: Any = {"criteria": {name: 1}}
    seen = []
    for _ in range(3):
        one = row(content, "match_type", name)
        content = with_value(content, one.location, next_choice(one))
        seen.append(content["criteria"][name]["match_type"])
    assert seen == ["IN_ORDER", "ANY_ORDER", "EXACT"]
    assert next_choice(row({"criteria": {name: {"threshold": 1, "match_type": 1}}}, "match_type", name)) == "ANY_ORDER"
    assert next_choice(row({"criteria": {name: {"threshold": 1, "match_type": []}}}, "match_type", name)) == "EXACT"
    assert next_choice(row(content, "ignore_args", name)) is True


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("threshold", "0,8", "a point, not a comma"),
        ("threshold", "nan", "not a number"),
        ("threshold", "", "not a number"),
        ("num_samples", "0", "at least 1"),
        ("num_samples", "2.5", "whole"),
        ("judge_model", "  ", "press D to remove the field"),
    ],
)
def test_invalid_value_is_refused_with_a_hint(field: str, typed: str, words: str) -> None:
    one = row({"criteria": {"final_response_match_v2": 0.8}}, field, "final_response_match_v2")
    with pytest.raises(ValueRefusedError, match=words):
        read_typed(one, typed)


def options_of(name: str, **options: Any) -> dict[str, FormRow]:
    content = {"criteria": {name: {"threshold": 1.0, **options}}}
    return {row.field.name: row for row in rows_of(content) if row.criterion == name}


def test_lists_limits_and_turns_have_their_own_kinds_of_input() -> None:
    answer, limit = options_of("answer_match", contains=["a"], turns="last"), options_of("limits", cost=0.05)
    assert [answer[name].kind for name in ("contains", "regex", "turns")] == ["lines", "lines", "choice"]
    assert read_typed(answer["contains"], "refund\n\n A-7 \n") == ["refund", " A-7 "]
    assert next_choice(answer["turns"]) == "all"
    assert read_typed(answer["turns"], "2") == 2
    assert [limit[name].kind for name in ("tokens", "cost")] == ["number", "number"]
    assert (read_typed(limit["cost"], "0.07"), read_typed(limit["seconds"], "30")) == (0.07, 30)
    assert stepped(limit["cost"], 0.01) == 0.06
    with pytest.raises(ValueRefusedError, match=r"must be a whole number, not 0\.5"):
        read_typed(limit["tokens"], "0.5")
    rules = options_of("tool_trajectory_avg_score")["args_match"]
    assert rules.kind == "json"
    assert rules.field.help.endswith("see rules for values."), "no Markdown on the screen"


@pytest.mark.parametrize("name", ["answer_match", "limits"])
def test_only_criteria_that_need_an_option_are_invalid_without_options(name: str) -> None:
    def valid(content: dict[str, Any]) -> bool:
        return not new_faults(new_draft(Path("test_config.json")), content)

    info, content = descriptions()[name], with_criterion({"criteria": {}}, name)
    assert not valid(content)
    for option in info.needs_one_of:
        value = ["x"] if name == "answer_match" else 5
        assert valid(with_value(content, ("criteria", name, option), value))
    free = [one.name for one in descriptions().values() if not one.needs_one_of and not one.informational]
    assert all(valid(with_criterion({"criteria": {}}, other)) for other in free)


def test_malformed_values_become_editable_rows() -> None:
    shapes: tuple[Any, ...] = (
        [],
        {"criteria": 3},
        {"criteria": {"safety_v1": [1]}},
        {"criteria": {}, "user_simulator_config": 1},
    )
    for content in shapes:
        assert rows_of(content)
    odd = {"criteria": {"final_response_match_v2": {"threshold": None, "judge_model_options": 3}}}
    assert row(odd, "judge_model_options", "final_response_match_v2").kind == "json"
    rubrics: Any = {"criteria": {"rubric_based_tool_use_quality_v1": {"threshold": 1, "rubrics": [3, {"x": 1}]}}}
    assert [one.kind for one in rows_of(rubrics) if one.depth == 2] == ["json", "text"]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: str(preset.name))
def test_preset_is_a_valid_config(preset: Any) -> None:
    one = new_draft(FILE)
    content, new = with_preset(one.content, preset, instead=True)
    config = parse_config(FILE, one.bytes_of(content))
    assert [*config.faults, *check_criteria(config)] == []
    assert {item.name for item in config.criteria} == set(preset.criteria)
    assert set(new) >= set(preset.criteria)
    assert with_preset(content, preset) == (content, [])
    assert "alls" in preset.cost or "no call" in preset.cost


def test_documented_presets_equal_the_descriptions(repository: Path) -> None:
    documented = (repository / "docs" / "criteria-editing.md").read_text(encoding="utf-8")
    assert "\n".join(_presets_list()) in documented


def _presets_list() -> Iterator[str]:
    """Yield the presets as Markdown: their judges, and their criteria with threshold and match type."""
    for preset in PRESETS:
        who = {info.asks.who: None for name in preset.criteria if (info := descriptions()[name]).asks is not None}
        answered_by = [{"judge": "a judge", "service": "Google's evaluation service"}[one] for one in who]
        items = list(preset.criteria.items())
        if preset.simulator is not None:
            answered_by.append("the simulated user's model")
            items += preset.simulator.items()
        yield f"- **{preset.name}** asks {' and '.join(answered_by) or 'no judge'}."
        for name, value in items:
            options = value if isinstance(value, dict) else {"threshold": value}
            words = [str(item) for item in options.values() if not isinstance(item, list)]
            yield f"  - {' '.join([f'`{name}`', *words])}"


def test_preset_keeps_existing_criteria() -> None:
    content, new = with_preset(draft().content, PRESETS[0])
    assert new == []
    assert content == draft().content


def test_cost_and_needs_of_criteria_are_described() -> None:
    assert cost(descriptions()["response_match_score"]) == "no calls"
    assert cost(descriptions()["final_response_match_v2"], 3) == "up to 3 judge calls per turn"
    assert "service" in cost(descriptions()["safety_v1"])
    assert "reference" in needs(descriptions()["final_response_match_v2"])
    assert "scenario" in needs(descriptions()["per_turn_user_simulator_quality_v1"])
    assert (
        cost(descriptions()["multi_turn_task_success_v1"]) == "1 call of Google's evaluation service per conversation"
    )
    assert "Not supported yet" in guide(replace(descriptions()["safety_v1"], score=""))


def test_two_versions_are_merged_by_criterion() -> None:
    base = {"criteria": {"a": 1, "b": 2, "c": 3}, "x": 1}
    theirs = {"criteria": {"a": 9, "b": 2, "c": 3, "d": 4}, "x": 2}
    mine = {"criteria": {"a": 1, "b": 5}, "x": 1, "y": 7}
    assert merged(base, theirs, mine) == {"criteria": {"a": 9, "b": 5, "d": 4}, "x": 2, "y": 7}
    assert changed_names(base, mine) == ["b", "c", "y"]


@pytest.mark.parametrize(
    ("theirs", "mine", "expected"),
    [
        ({"a": 9, "b": 2, "c": 3}, {"c": 3, "a": 1, "b": 2}, {"c": 3, "a": 9, "b": 2}),
        ({"a": 9, "b": 2, "c": 3}, {"c": 3, "a": 1, "b": 5}, {"c": 3, "a": 9, "b": 5}),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, {"c": 3, "a": 1, "b": 2}, {"c": 3, "a": 1, "b": 2, "d": 4}),
        ({"a": 1, "d": 4, "b": 2, "c": 3}, {"c": 3, "a": 1, "b": 2}, {"c": 3, "d": 4, "a": 1, "b": 2}),
        ({"a": 1, "c": 3}, {"c": 3, "b": 2, "a": 1}, {"c": 3, "a": 1}),
        ({"a": 9, "b": 2, "c": 3}, {"new": 7, "a": 1, "b": 2, "c": 3}, {"new": 7, "a": 9, "b": 2, "c": 3}),
        ({"c": 3, "b": 2, "a": 1}, {"a": 1, "b": 5, "c": 3}, {"c": 3, "b": 5, "a": 1}),
    ],
)
def test_merged_criteria_have_the_order_of_the_side_that_moved_them(
    theirs: dict[str, int], mine: dict[str, int], expected: dict[str, int]
) -> None:
    both = merged({"criteria": {"a": 1, "b": 2, "c": 3}}, {"criteria": theirs}, {"criteria": mine})
    assert list(both["criteria"].items()) == list(expected.items())


# On the disk


def test_moved_criteria_are_written_into_the_version_on_disk() -> None:
    base = draft('{"criteria": {"response_match_score": 0.8, "safety_v1": 0.5}}')
    there = draft('{"criteria": {"response_match_score": 0.7, "safety_v1": 0.5}}')
    mine, _ = moved(base.content, ("criteria", "safety_v1"), -1)
    _, after = edit_of(there, merged(base.content, there.content, mine))
    assert after == b'{"criteria": {"safety_v1": 0.5, "response_match_score": 0.7}}'


@pytest.fixture
def saver(tmp_path: Path) -> Saver:
    return Saver(tmp_path / "state", tmp_path)


def save_config(saver: Saver, one: ConfigDraft, content: Any, *, over: bytes | None = None) -> ConfigDraft:
    label, after = edit_of(one, content)
    saver.save(label, {one.file: (one.before if over is None else over, after)})
    return draft_of(one.file, after)


def test_changed_threshold_is_one_line_on_disk(tmp_path: Path, saver: Saver) -> None:
    file = tmp_path / "test_config.json"
    before = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    file.write_bytes(before)
    one = open_config(file)
    where = row(one.content, "threshold", "response_match_score").location
    saved = save_config(saver, one, with_value(one.content, where, 0.7))
    assert file.read_bytes() == before.replace(b"   0.8,", b"   0.7,")
    assert saved.before == file.read_bytes()
    assert saver.undo().label == "criteria: response_match_score"
    assert file.read_bytes() == before


def test_new_file_has_a_plain_layout(tmp_path: Path, saver: Saver) -> None:
    one = new_draft(tmp_path / "test_config.json")
    save_config(saver, one, with_criterion(one.content, "safety_v1"))
    assert one.file.read_text() == (
        '{\n  "criteria": {\n    "tool_trajectory_avg_score": 1.0,\n    "response_match_score": 0.8,\n'
        '    "safety_v1": 0.8\n  }\n}\n'
    )


def test_config_that_would_stop_a_run_is_not_written(tmp_path: Path, saver: Saver) -> None:
    file = tmp_path / "test_config.json"
    text = TEXT.replace(', "weight": 3', "")
    file.write_text(text)
    one = open_config(file)
    name = "rubric_based_tool_use_quality_v1"
    twice = with_value(one.content, ("criteria", name, "rubrics", 1, "rubricId"), "a")
    with pytest.raises(ConfigRejectedError, match="is used twice"):
        save_config(saver, one, twice)
    assert file.read_text() == text


def test_existing_fault_does_not_block_an_edit(tmp_path: Path, saver: Saver) -> None:
    file = tmp_path / "test_config.json"
    file.write_text('{"criteria": {"safety_v2": 0.5, "response_match_score": 0.8}}')
    one = open_config(file)
    save_config(saver, one, with_value(one.content, ("criteria", "response_match_score"), 0.7))
    assert file.read_text() == '{"criteria": {"safety_v2": 0.5, "response_match_score": 0.7}}'


def test_newer_content_is_not_overwritten(tmp_path: Path, saver: Saver) -> None:
    file = tmp_path / "test_config.json"
    file.write_text(TEXT)
    one = open_config(file)
    file.write_text("{}")
    content = with_value(one.content, ("criteria", "response_match_score"), 0.7)
    with pytest.raises(ChangedOnDiskError):
        save_config(saver, one, content)
    assert file.read_text() == "{}"
    save_config(saver, one, content, over=b"{}")
    assert file.read_text() == TEXT.replace("   0.8,", "   0.7,")


@pytest.mark.parametrize("text", ["{", "[]", '{"criteria": {"response_match_score": 0.8,}}', "{} // why", ""])
def test_invalid_config_is_left_unchanged(text: str) -> None:
    with pytest.raises(EditError):
        draft(text)


def test_file_without_criteria_shows_the_defaults() -> None:
    one = draft('{"live_model_config": {"timeout_seconds": 3}}')
    assert one.defaults
    assert list(one.content["criteria"]) == ["tool_trajectory_avg_score", "response_match_score"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
NAMES = st.sampled_from([*descriptions(), "mine"])
KEYS = st.sampled_from(["threshold", "rubrics", "judge_model_options", "judgeModelOptions", "match_type", "odd"])
CONFIGS = st.fixed_dictionaries(
    {}, optional={"criteria": st.dictionaries(NAMES, JSON | st.dictionaries(KEYS, JSON)) | JSON, "x": JSON}
)


@given(CONFIGS)
def test_rows_of_any_content_have_its_values(content: Any) -> None:
    for one in rows_of(content):
        if one.given and one.kind not in ("rubrics", "heading") and one.location != ("criteria",):
            value = content
            for step in one.location:
                value = value[step] if not isinstance(value, dict) else value.get(step)
            assert json.dumps(value) == json.dumps(one.value)


@given(CONFIGS, st.data())
def test_any_content_can_be_changed_at_any_row(content: Any, data: st.DataObject) -> None:
    rows = rows_of(content)
    one = data.draw(st.sampled_from(rows))
    if one.kind not in ("heading", "rubrics", "kept"):
        changed = with_value(content, one.location, "x")
        value: Any = changed
        for step in one.location:
            value = value[step]
        assert value == "x"
    if one.unit:
        without(content, one.unit)
    if one.kind == "threshold" or one.depth == 2:
        moved(content, one.unit, 1)
    changed = with_criterion(content, "hallucinations_v1")
    assert merged(content, content, changed)["criteria"] == changed["criteria"]
    with contextlib.suppress(ValueRefusedError):
        with_rubric(with_criterion(content, "rubric_based_tool_use_quality_v1"), "rubric_based_tool_use_quality_v1")
    for preset in PRESETS:
        with_preset(content, preset)


def test_metrics_without_a_threshold_have_a_row_until_the_config_gives_one() -> None:
    content = {"criteria": {"Mine": 4.0}}
    entries = {name: {"agents_cli": {"kind": "function", "suggested": 4.0}} for name in ("mine", "other")}
    rows = list(metric_rows(content, MetricsConfig(None, ("mine", "other"), entries)))
    assert [(row.criterion, row.value, row.given) for row in rows] == [("other", None, False)]
    assert with_value(content, rows[0].location, 3.0) == {"criteria": {"Mine": 4.0, "other": 3.0}}
    assert [stepped(rows[0], step) for step in (0.05, -0.05)] == [4.0, 4.0], "the scale of the metric, not 0 to 1"
