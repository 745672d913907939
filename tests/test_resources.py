"""The folders that come with the program are found."""

from workbench import resources


def test_themes_and_samples_are_there() -> None:
    assert list(resources.themes().glob("*.toml"))
    assert (resources.sample_agents() / "order_desk").is_dir()
