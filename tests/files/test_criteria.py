"""Criteria configs in every shape: what stops a run, and what is only a warning."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.files import samples
from workbench.files.criteria import CriteriaConfig, Criterion, default_config, parse_config, read_config


def _read(folder: Path, content: Any) -> CriteriaConfig:
    path = folder / "test_config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_config(path)


def _reported(config: CriteriaConfig) -> list[str]:
    return [f"{fault.severity} {fault.sentence('').removeprefix(':')}" for fault in config.faults]


def test_criterion_may_be_a_number_or_an_object(tmp_path: Path) -> None:
    judge = {"judgeModel": "m", "num_samples": 3}
    options = {
        "threshold": "0.25",
        "matchType": "IN_ORDER",
        "judgeModelOptions": judge,
        "includeIntermediateResponsesInFinal": True,
        "ownKey": {"aB": 1},
    }
    values = {"plain": 1, "half": 0.5, "text": "0.5", "yes": True, "object": options}
    config = _read(tmp_path, {"criteria": values})
    assert not config.broken
    assert config.criteria == (
        Criterion("plain", 1.0, 1, {}),
        Criterion("half", 0.5, 0.5, {}),
        Criterion("text", 0.5, "0.5", {}),
        Criterion("yes", 1.0, True, {}),
        Criterion(
            "object",
            0.25,
            options,
            {
                "match_type": "IN_ORDER",
                "judge_model_options": {"judge_model": "m", "num_samples": 3},
                "include_intermediate_responses_in_final": True,
                "own_key": {"aB": 1},
            },
        ),
    )
    assert [line.split(" ")[0] for line in _reported(config)] == ["warning"] * 3


def test_config_reads_all_sections(tmp_path: Path) -> None:
    config = _read(tmp_path, samples.CONFIG)
    assert not config.broken
    assert [criterion.name for criterion in config.criteria] == ["a", "b", "c"]
    assert config.custom_metrics == samples.CONFIG["custom_metrics"]
    assert config.user_simulator_config == samples.CONFIG["user_simulator_config"]
    assert config.live_model_config == samples.CONFIG["live_model_config"]
    camel = _read(tmp_path, {"criteria": {}, "customMetrics": {"x": {"codeConfig": {"name": "f"}}}})
    assert camel.custom_metrics == {"x": {"codeConfig": {"name": "f"}}}


def test_default_config_has_adks_criteria() -> None:
    config = default_config()
    assert [(criterion.name, criterion.threshold) for criterion in config.criteria] == [
        ("tool_trajectory_avg_score", 1.0),
        ("response_match_score", 0.8),
    ]
    assert (config.path, config.faults, config.broken, config.has_criteria) == (None, (), False, True)
    assert config.place(("criteria",)) == (0, 0)


def test_missing_criteria_key_differs_from_empty_criteria(tmp_path: Path) -> None:
    without = _read(tmp_path, {})
    assert (without.has_criteria, without.criteria, without.broken) == (False, (), False)
    assert "the defaults apply here" in _reported(without)[0]
    none = _read(tmp_path, {"criteria": {}})
    assert (none.has_criteria, none.criteria, none.broken) == (True, (), False)
    assert "nothing is judged" in _reported(none)[0]


# In these the place of the fault is marked with §.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"criteria": {"m": §null}}', "(criteria.m): `m` must be a number, or an object with `threshold`, not null"),
        ('{"criteria": {"m": §NaN}}', "(criteria.m): `m` is nan: no score can be compared with it"),
        ('{"criteria": {"m": §-Infinity}}', "(criteria.m): `m` is -inf: no score can be compared with it"),
        ('{"criteria": {"m": §1e999}}', "(criteria.m): `m` is inf: no score can be compared with it"),
        ('{"criteria": {"m": §"nan"}}', "(criteria.m): `m` is nan: no score can be compared with it"),
        ('{"criteria": {"m": §"80%"}}', "(criteria.m): `m` must be a number, or an object with `threshold`, not the"),
        ('{"criteria": {"m": §[]}}', "(criteria.m): `m` must be a number, or an object with `threshold`, not a list"),
        ('{"criteria": {"m": §{}}}', "(criteria.m): `threshold` is missing"),
        ('{"criteria": {"m": {§"treshold": 1}}}', "(criteria.m.treshold): `threshold` is missing. Did you mean"),
        ('{"criteria": {"m": {"threshold": §null}}}', "(criteria.m.threshold): `threshold` must be a number, not null"),
        ('{"criteria": {"m": {"threshold": §NaN}}}', "(criteria.m.threshold): `threshold` is nan: no score"),
        (
            '{"criteria": {"m": {"threshold": 1, "includeIntermediateResponsesInFinal": §"maybe"}}}',
            "(criteria.m.includeIntermediateResponsesInFinal): `include_intermediate_responses_in_final` must be true",
        ),
        (
            '{§"criterias": {}}',
            "(criterias): unknown key `criterias`: ADK would ignore it. Did you mean `criteria`?",
        ),
        ('{§"Criteria": {}}', "(Criteria): unknown key `Criteria`: ADK would ignore it. Did you mean `criteria`?"),
        ('{"criteria": {}, §"custom_metric": {}}', "(custom_metric): unknown key `custom_metric`: ADK would ignore"),
        ('{"criteria": §null}', "(criteria): `criteria` must be an object, not null"),
        ("§[]", "a config must be an object with `criteria`, not a list"),
        ("§null", "a config must be an object with `criteria`, not null"),
        ('{"criteria": {"m": 1§,}}', "(criteria): a trailing comma before `}`"),
        ('{"criteria": {"m": 1} §// why\n}', "a comment (//): JSON does not allow comments"),
        ('{"criteria": {"m": 1}}§}', "a surplus brace `}`: nothing is open here"),
        (
            '{"criteria": {}, "custom_metrics": {"m": {"code_config": {"name": "f", §"args": []}}}}',
            "(custom_metrics.m.code_config.args): unknown key `args`: ADK rejects the file",
        ),
        (
            '{"criteria": {}, "user_simulator_config": {"type": §"llm"}}',
            '(user_simulator_config.type): `type` is the text "llm", which is not a known simulator. Known: llm_backed',
        ),
        (
            '{"criteria": {}, "user_simulator_config": {"custom_instructions": §"hi {{ stop_signal }}"}}',
            "(user_simulator_config.custom_instructions): the instructions must use {{ conversation_plan }}",
        ),
        (
            '{"criteria": {}, "user_simulator_config": {"model_configuration": {§"temprature": 1}}}',
            "(user_simulator_config.model_configuration.temprature): unknown key `temprature`: ADK rejects the file."
            " Did you mean `temperature`?",
        ),
        (
            '{"criteria": {}, "live_model_config": {"timeout_seconds": §1.5}}',
            "(live_model_config.timeout_seconds): `timeout_seconds` must be a whole number, not the number 1.5",
        ),
    ],
)
def test_wrong_config_is_an_error_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    column = text.index("§") + 1
    config = _read(tmp_path, text.replace("§", ""))
    assert config.broken
    errors = [line.removeprefix("error ") for line in _reported(config) if line.startswith("error")]
    assert errors[0].startswith(f"1:{column} {expected}" if expected.startswith("(") else f"1:{column}: {expected}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"criteria": {"m": §"0.5"}}', '(criteria.m): `m` is the text "0.5": ADK reads it as the number 0.5'),
        ('{"criteria": {"m": §true}}', "(criteria.m): `m` is true: ADK reads it as the number 1"),
        ('{"criteria": {"m": {"threshold": §false}}}', "(criteria.m.threshold): `threshold` is false: ADK reads it as"),
        ('{"criteria": {"m": 1}, §"zebra": 1}', "(zebra): ADK does not know the key `zebra` here and drops it"),
        ('{"criteria": {"m": 1, §"m": 0.5}}', "(criteria.m): duplicate key `m`: this one is used"),
        (
            '{"criteria": {"m": 1}, "live_model_config": {§"timeout": 1}}',
            "(live_model_config.timeout): ADK does not know the key `timeout` here and drops it",
        ),
    ],
)
def test_suspicious_config_is_a_warning(tmp_path: Path, text: str, expected: str) -> None:
    config = _read(tmp_path, text.replace("§", ""))
    assert not config.broken
    assert config.criteria[0].name == "m"
    assert _reported(config)[0].startswith(f"warning 1:{text.index('§') + 1} {expected}")


def test_criteria_with_other_scales_have_no_faults(tmp_path: Path) -> None:
    custom = {"m": {"code_config": {"name": "f"}}}
    config = _read(tmp_path, {"criteria": {"response_evaluation_score": 4, "m": 90}, "custom_metrics": custom})
    assert config.faults == ()


def test_readable_part_of_a_broken_config_is_read(tmp_path: Path) -> None:
    config = _read(tmp_path, '{"criteria": {"a": 1, "b": null, "c": {"threshold": 0.5}, "d": {}}}')
    assert config.broken
    assert [criterion.name for criterion in config.criteria] == ["a", "c"]
    assert len(config.faults) == 2


def test_any_path_in_a_config_has_a_place(tmp_path: Path) -> None:
    config = _read(
        tmp_path, '{\n  "criteria": {\n    "trajectry": 1,\n    "m": {"threshold": 1,\n      "matchType": "X"}\n  }\n}'
    )
    assert config.place(("criteria", "trajectry")) == (3, 5)
    assert config.place(("criteria", "m", "match_type")) == (5, 7)
    assert config.place(("criteria", "m", "nothing", "here")) == (4, 5)
    assert config.place(("nothing",)) == (1, 1)


def test_unreadable_config_has_one_fault(tmp_path: Path) -> None:
    missing = read_config(tmp_path / "no.json")
    assert missing.broken
    assert [fault.message for fault in missing.faults] == ["there is no such file"]
    assert read_config(tmp_path).broken
    assert _reported(_read(tmp_path, "")) == ["error 1:1: the file is empty"]
    with_mark = _read(tmp_path, '\ufeff{"criteria": {"m": 1}}')
    assert not with_mark.broken
    assert "byte-order mark" in _reported(with_mark)[0]


@pytest.mark.parametrize(
    "content",
    [
        '{"criteria": {"response_match_score": 0.8}}'.encode("utf-16"),
        '{"criteria": {}}'.encode("utf-32"),
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
        b"criteria:\n  response_match_score: 0.8\n  x: [1, 2]\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
    ],
    ids=["utf-16", "utf-32", "picture", "yaml", "lfs pointer"],
)
def test_config_that_is_not_json_gets_one_fault(content: bytes) -> None:
    (fault,) = parse_config(Path("test_config.json"), content).faults
    assert fault.severity == "error"
