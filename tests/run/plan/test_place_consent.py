"""What the user confirmed is asked again once address, root or variables change."""

from dataclasses import replace
from pathlib import Path

from workbench.files.folders import settings_folder
from workbench.results.machines import sending_lines
from workbench.run.dask.files import Sending, UnconfirmedError, confirm, is_confirmed

SENDING = Sending("cluster", "tls://h:1", Path("/shop"), {"desk/agent.py": 10}, {".env": "it is hidden"}, ("KEY", "B"))


def test_place_must_be_confirmed_again_after_a_change() -> None:
    assert not is_confirmed(SENDING)
    confirm(SENDING)
    assert is_confirmed(replace(SENDING, sizes={}, left_out={}, place="other name", variables=("B", "KEY")))
    for changed in (
        replace(SENDING, address="tls://evil:1"),
        replace(SENDING, root=Path("/shop/copy")),
        replace(SENDING, variables=("KEY", "B", "C")),
        replace(SENDING, variables=("KEY",)),
    ):
        assert not is_confirmed(changed)
        confirm(changed)
        assert is_confirmed(changed)
    assert not is_confirmed(SENDING), "other variables were confirmed since"
    assert (settings_folder() / "places.json").stat().st_mode & 0o777 == 0o600


def test_broken_record_of_consent_counts_as_missing() -> None:
    for content in ("{", "[]", '{"/shop": 3}', '{"/shop": {"tls://h:1": "KEY"}}', "[" * 100_000):
        settings_folder().mkdir(parents=True, exist_ok=True)
        (settings_folder() / "places.json").write_text(content)
        assert not is_confirmed(SENDING)
    confirm(SENDING)
    assert is_confirmed(SENDING)


def test_refusal_and_question_name_place_files_and_variables() -> None:
    refused = UnconfirmedError(SENDING)
    assert "cluster (tls://h:1)" in str(refused)
    assert "--on cluster" in refused.hint
    text = "\n".join(sending_lines(SENDING))
    for words in (
        "cluster (tls://h:1)",
        "\n           encrypted\n",
        "/shop",
        "1 file,",
        ".env: it is hidden",
        "KEY, B",
    ):
        assert words in text
    many = replace(SENDING, address="dask://h:1", left_out={f"{n}\x1b": "x" for n in range(20)}, variables=())
    text = "\n".join(sending_lines(many))
    assert "not encrypted" in text
    assert "12 more" in text
    assert "variables  none" in text
    assert "\x1b" not in text


def test_unsent_files_are_listed_last_and_hidden_files_after_the_others() -> None:
    left = {**{f".{n}": "it is hidden" for n in range(20)}, "b.csv": "desk has read it: `git add` it"}
    lines = list(sending_lines(replace(SENDING, left_out=left)))
    assert next(number for number, line in enumerate(lines) if "stays" in line) > next(
        number for number, line in enumerate(lines) if line.startswith("variables")
    )
    assert lines[-9].strip() == "stays    b.csv: desk has read it: `git add` it"
