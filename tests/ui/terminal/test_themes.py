"""Themes are complete, readable and distinct, and errors in the user's own are reported."""

from pathlib import Path

import pytest
from textual.color import Color
from textual.theme import Theme

from workbench.results.faces import FACES, FLAKY
from workbench.ui.terminal.themes import DEFAULT, ThemeError, Themes, read_theme, variable_defaults

OWN = Themes()
DIFFERENCES = ["diff-same", "diff-differs", "diff-missing", "diff-extra", "diff-moved"]


def luminance(color: Color) -> float:
    def part(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4

    return 0.2126 * part(color.r) + 0.7152 * part(color.g) + 0.0722 * part(color.b)


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(Color.parse(one)), luminance(Color.parse(other))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def read_all() -> list[Theme]:
    return [OWN.read(name) for name in OWN.names]


def test_five_or_more_themes_include_light_high_contrast_and_sixteen_colours() -> None:
    themes = {theme.name: theme for theme in read_all()}
    assert len(themes) >= 5
    assert DEFAULT in themes
    assert not themes["paper"].dark
    assert themes["terminal"].ansi
    assert "contrast" in themes


@pytest.mark.parametrize("theme", read_all(), ids=lambda theme: theme.name)
def test_every_status_and_difference_has_a_colour(theme: Theme) -> None:
    faces = {face.variable for face in (*FACES.values(), FLAKY)}
    names = faces | {*DIFFERENCES, "label", "label-strong", "status-muted"}
    assert names <= theme.variables.keys()


@pytest.mark.parametrize("theme", [theme for theme in read_all() if not theme.ansi], ids=lambda theme: theme.name)
def test_text_has_enough_contrast_on_the_background_and_under_the_cursor(theme: Theme) -> None:
    least = 7.0 if theme.name == "contrast" else 4.5
    names = {face.variable for face in (*FACES.values(), FLAKY)} | {*DIFFERENCES, "label", "label-strong"}
    assert theme.background is not None
    poor = {
        (name, background): round(contrast(theme.variables[name], background), 1)
        for name in names
        for background in (
            theme.background,
            theme.variables["block-cursor-background"],
            theme.variables["block-cursor-blurred-background"],
        )
        if contrast(theme.variables[name], background) < (least if background == theme.background else 4.5)
    }
    assert not poor


@pytest.mark.parametrize("theme", read_all(), ids=lambda theme: theme.name)
def test_fail_error_pass_and_running_have_different_colours(theme: Theme) -> None:
    colors = [theme.variables[name] for name in ("status-passed", "status-failed", "status-error", "status-running")]
    assert len(set(colors)) == len(colors)


def test_sixteen_colour_theme_uses_no_other_colours() -> None:
    file = OWN.files["terminal"]
    text = file.read_text(encoding="utf-8")
    assert "#" not in "".join(
        line.partition("#")[0] + line.partition('"')[2] for line in text.splitlines() if '"' in line
    )


def test_users_theme_replaces_a_theme_with_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "night.toml").write_text('[colors]\nprimary = "#123456"\n', encoding="utf-8")
    themes = Themes([tmp_path])
    assert themes.read("night").primary == "#123456"
    assert themes.names.count("night") == 1


def test_theme_with_few_colours_gets_all_variables(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[colors]\nprimary = "#7aa2f7"\nsuccess = "green"\n', encoding="utf-8")
    defaults = variable_defaults(read_theme(file))
    assert defaults["status-passed"] == "green"
    assert {face.variable for face in (*FACES.values(), FLAKY)} <= defaults.keys()
    assert set(DIFFERENCES) <= defaults.keys()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[colors]\n", "colors.primary is missing"),
        ('[colors]\nprimary = "bluish"\n', "primary: 'bluish' is not a color"),
        ('[colors]\nprimary = "red"\nthird = "red"\n', "unknown color third"),
        ('[colours]\nprimary = "red"\n', "unknown entry colours"),
        ("[colors\n", "theme "),
        ("colors = 3\n", "theme "),
        ('[colors]\nprimary = "red"\n[statuses]\npassed = "\\u001b[31m"\n', "is not a color"),
    ],
)
def test_error_in_a_theme_is_reported_as_safe_text(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ThemeError) as caught:
        read_theme(file)
    assert complaint in str(caught.value)
    assert "mine.toml" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_unknown_theme_lists_the_known_themes() -> None:
    with pytest.raises(ThemeError, match="x is not a theme; known themes: contrast, ember, night"):
        OWN.read("x")
