"""The user's settings file: faults are reported, and one line is changed."""

import stat
from pathlib import Path

import pytest

from workbench.files.folders import settings_folder
from workbench.files.prices import Price, Prices
from workbench.files.settings import read_settings, remember_theme


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "config.toml"


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_missing_file_means_default_settings(file: Path) -> None:
    settings = read_settings(file)
    assert (settings.theme, settings.mouse, settings.keys, settings.faults) == (None, True, {}, ())


def test_default_file_is_in_the_platforms_config_folder() -> None:
    assert read_settings().file == settings_folder() / "config.toml"


def test_values_of_the_file_are_read(file: Path) -> None:
    write(file, 'theme = "paper"\nmouse = false\n[keys]\nrun = "R"\nsort = ["s", "S"]\n')
    settings = read_settings(file)
    assert (settings.theme, settings.mouse) == ("paper", False)
    assert settings.keys == {"run": ("R",), "sort": ("s", "S")}


def test_wrong_value_is_a_fault_and_other_values_apply(file: Path) -> None:
    write(file, 'theme = 3\nmouse = "no"\nthem = "x"\n[keys]\nrun = 3\nsort = "S"\n')
    settings = read_settings(file)
    assert (settings.theme, settings.mouse, settings.keys) == (None, True, {"sort": ("S",)})
    assert len(settings.faults) == 4
    assert any("Did you mean theme?" in fault for fault in settings.faults)


def test_limits_for_judges_are_read(file: Path) -> None:
    settings = read_settings(write(file, "all_votes = true\nmax_judge_calls = 0\n"))
    assert (settings.all_votes, settings.max_judge_calls, settings.faults) == (True, 0, ())
    for wrong in ("true", "-1", '"5"', "1.5"):
        settings = read_settings(write(file, f"all_votes = 1\nmax_judge_calls = {wrong}\n"))
        assert (settings.all_votes, settings.max_judge_calls, len(settings.faults)) == (False, None, 2)


def test_prices_are_read_with_their_faults(file: Path) -> None:
    write(file, '[prices]\ncurrency = "EUR"\n"gemini-2.5-flash" = { input = 0.30, output = 2.50 }\nother = 3\n')
    settings = read_settings(file)
    assert settings.prices == Prices({"gemini-2.5-flash": Price(0.30, 2.50)}, "EUR")
    (fault,) = settings.faults
    assert fault.startswith('config.toml: prices."other" must be a table')
    assert read_settings(write(file, "prices = 3\n")).prices == Prices()


@pytest.mark.parametrize("text", ["theme = ", "\x1b[31m = 1"])
def test_broken_file_is_one_fault_without_control_characters(file: Path, text: str) -> None:
    write(file, text)
    (fault,) = read_settings(file).faults
    assert "config.toml" in fault
    assert "\x1b" not in fault


def test_binary_file_is_a_fault(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"\xff\xfe\x00")
    assert len(read_settings(file).faults) == 1


def test_remembering_a_theme_creates_the_file(file: Path) -> None:
    remember_theme("paper", file)
    assert file.read_text(encoding="utf-8") == 'theme = "paper"\n'


def test_remembering_a_theme_changes_only_one_line(file: Path) -> None:
    before = '# mine\r\nmouse = true\n  theme   =  "old"  # note\r\n\n[keys]\ntheme = "T"\n'
    write(file, before).write_bytes(before.encode())
    file.chmod(0o640)
    remember_theme("new", file)
    assert file.read_bytes().decode() == before.replace('"old"', '"new"')
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_theme_key_inside_a_table_is_ignored(file: Path) -> None:
    write(file, '[keys]\ntheme = "T"\n')
    remember_theme("new", file)
    assert read_settings(file).theme == "new"
    assert read_settings(file).keys == {"theme": ("T",)}


def test_broken_file_is_not_changed(file: Path) -> None:
    write(file, "theme = ")
    with pytest.raises(ValueError, match="Invalid"):
        remember_theme("new", file)
    assert file.read_text(encoding="utf-8") == "theme = "


def test_watch_limits_are_read(file: Path) -> None:
    settings = read_settings(write(file, "[watch]\ncalls = 50\nmoney = 0.5\n"))
    assert (settings.watch_calls, settings.watch_money, settings.faults) == (50, 0.5, ())
    for wrong in ("true", "-1", '"5"', "inf", "nan", "9" * 400):
        settings = read_settings(write(file, f"[watch]\nmoney = {wrong}\n"))
        assert (settings.watch_money, settings.faults) == (
            None,
            ("config.toml: watch.money must be a number, 0 or more",),
        )
    settings = read_settings(write(file, "[watch]\ncall = 5\n"))
    assert settings.faults == ("config.toml: unknown setting watch.call. Known: calls, money",)


def test_names_of_secrets_are_read(file: Path) -> None:
    settings = read_settings(write(file, '[secrets]\nnames = ["ACME_LICENSE"]\n'))
    assert (settings.secret_names, settings.faults) == (("ACME_LICENSE",), ())
    settings = read_settings(write(file, '[secrets]\nnames = "ACME_LICENSE"\n'))
    assert (settings.secret_names, settings.faults) == (
        (),
        ("config.toml: secrets.names must be a list of names of variables",),
    )
    settings = read_settings(write(file, "[secrets]\nname = []\n"))
    assert settings.faults == ("config.toml: unknown setting secrets.name. Known: names",)
