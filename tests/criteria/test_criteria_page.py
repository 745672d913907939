import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from workbench.criteria.criteria_page import generated, schema
from workbench.criteria.registry import descriptions


def test_committed_page_is_up_to_date(repository: Path) -> None:
    committed = (repository / "docs" / "criteria.md").read_text(encoding="utf-8")
    for part in generated():
        assert part in committed, "put there what this prints: python -m workbench.criteria.criteria_page"


def test_each_criterion_has_its_section() -> None:
    text, _ = generated()
    words = " ".join(text.split())
    for name, info in descriptions().items():
        assert f"\n## {name}\n" in text
        assert info.how_to_read in words
    assert text.count("Not supported yet") == sum(not info.supported for info in descriptions().values())


def test_committed_schema_is_up_to_date(repository: Path) -> None:
    committed = json.loads((repository / "docs" / "test_config.schema.json").read_text(encoding="utf-8"))
    assert committed == schema(), (
        "run: python -m workbench.criteria.criteria_page schema > docs/test_config.schema.json"
    )


@pytest.mark.parametrize(
    ("criteria", "valid"),
    [
        ({"tool_trajectory_avg_score": {"threshold": 1, "match_type": "IN_ORDER", "ignore_args": True}}, True),
        ({"response_match_score": 0.8, "mine": "anything"}, True),
        ({"tool_trajectory_avg_score": {"threshold": 1, "match_type": "SOMEHOW"}}, False),
        ({"response_match_score": 1.5}, False),
        ({"final_response_match_v2": {"threshold": 1, "judge_model_options": {"num_samples": 0}}}, False),
        ({"final_response_match_v2": {"judge_model_options": {}}}, False),
    ],
)
def test_schema_accepts_valid_configs_and_rejects_invalid_ones(criteria: dict[str, Any], valid: bool) -> None:
    assert jsonschema.Draft202012Validator(schema()).is_valid({"criteria": criteria}) is valid
