from pathlib import Path

from workbench.metrics.criteria_page import page
from workbench.metrics.registry import known


def test_the_committed_page_is_what_the_registry_says(repository: Path) -> None:
    committed = (repository / "docs" / "criteria.md").read_text(encoding="utf-8")
    assert committed == page(), "run: python -m workbench.metrics.criteria_page > docs/criteria.md"


def test_each_criterion_has_its_section() -> None:
    text = page()
    for name, info in known().items():
        assert f"\n## {name}\n" in text
        assert info.how_to_read in text
    assert text.count("Not supported yet") == sum(not info.supported for info in known().values())
