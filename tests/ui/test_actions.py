"""The table of actions: one row each, keys that terminals can send, and the documents made from it."""

from pathlib import Path

from workbench.ui.actions import ACTIONS, BY_ID, actions_in, footer, key_label, key_name, keymap
from workbench.ui.actions.__main__ import document
from workbench.ui.actions.action import VERDICTS
from workbench.ui.actions.elsewhere import IN_PLACE, OTHERS, PLACE_NAMES

CONTRACT = {
    "move_down": "j down",
    "move_up": "k up",
    "top": "g home",
    "bottom": "G end",
    "page_down": "ctrl+d pagedown",
    "page_up": "ctrl+u pageup",
    "close": "h left",
    "open": "l right",
    "enter": "enter",
    "back": "escape",
    "mark": "space",
    "mark_range": "v",
    "mark_all": "a",
    "run": "r",
    "rerun": "F",
    "repeat": "X",
    "options": "o",
    "cancel": "x",
    "score": "S",
    "next_problem": "n",
    "previous_problem": "N",
    "filter": "/",
    "sort": "s",
    "copy_id": "y",
    "copy": "Y",
    "palette": ": ctrl+p",
    "keys": "?",
    "next_pane": "tab",
    "previous_pane": "shift+tab",
    "jump": "'",
    "maximise": "z",
    "hide_tree": "b",
    "edit": "e",
    "edit_outside": "E",
    "new_case": "+",
    "duplicate": "d",
    "delete": "D",
    "move_cases": "m",
    "undo": "u",
    "redo": "U",
    "accept": "A",
}


def test_keys_equal_those_of_the_contract() -> None:
    assert {name: " ".join(BY_ID[name].keys) for name in CONTRACT} == CONTRACT
    assert "q" in BY_ID["quit"].keys


def test_ids_are_unique_and_no_key_has_two_actions_in_one_place() -> None:
    assert len(BY_ID) == len(ACTIONS)
    assert keymap().faults == ()


def test_no_key_is_reserved_by_terminals_or_multiplexers() -> None:
    taken = {f"ctrl+{letter}" for letter in "sqzabimhj"} | {f"f{number}" for number in range(1, 25)}
    keys = {key for action in ACTIONS for key in action.keys}
    assert keys & taken == {"ctrl+z"}, "suspends, as the terminal would do"
    assert BY_ID["suspend"].keys == ("ctrl+z",)
    assert not [key for key in keys if key.startswith(("alt+", "ctrl+shift+"))]


def test_footer_of_other_screens_has_its_most_useful_actions_and_the_help() -> None:
    for where in IN_PLACE:
        *first, last = footer(where)
        assert last.method == "keys"
        assert 1 <= len(first) <= {"table": 5, "variants": 4}.get(where, 3)
    led = [action.id for action in footer("criteria", ["save", "more"])]
    assert led == ["save", "more", "mark", "keys"]


def test_a_key_has_one_meaning_wherever_it_can_be_pressed() -> None:
    """Letters for verdicts are the exception: the review and the triage dialog are a mode of their own."""
    for group in ({row for row in ACTIONS if row.group == VERDICTS}, {row for row in ACTIONS if row.group != VERDICTS}):
        meanings: dict[str, list[str]] = {}
        for row in group:
            for key in row.keys:
                meanings.setdefault(key, []).append(row.id)
        assert {key: ids for key, ids in meanings.items() if len(ids) > 1} == {}
    for where in ("review", "triage"):
        keys = [key for row in actions_in(where) for key in row.keys]
        assert len(keys) == len(set(keys))


def test_places_list_only_existing_actions() -> None:
    assert PLACE_NAMES.keys() == IN_PLACE.keys()
    assert {name for names in IN_PLACE.values() for name in names} <= BY_ID.keys()
    assert {row.id for row in OTHERS} <= {name for names in IN_PLACE.values() for name in names}
    assert len(ACTIONS) < 110


def test_setting_for_a_removed_action_is_reported() -> None:
    keys = keymap({"table_run": ["B"], "criteria_match": ["m"]})
    assert [fault.partition(".")[0] for fault in keys.faults] == [
        "table_run is not an action",
        "criteria_match is not an action",
    ]


def test_keys_have_a_textual_name_and_a_label() -> None:
    names = {
        "?": "question_mark",
        "/": "slash",
        "'": "apostrophe",
        "+": "plus",
        "-": "minus",
        "}": "right_curly_bracket",
    }
    for sign, name in names.items():
        assert key_name(sign) == name
        assert key_label(name) == sign
    assert key_name("G") == "G"
    assert key_label("escape") == "esc"


def test_action_can_be_moved_to_another_key() -> None:
    keys = keymap({"run": ["B"]})
    assert keys.keys["run"] == ("B",)
    assert keys.faults == ()


def test_users_key_replaces_a_default_key() -> None:
    keys = keymap({"run": ["n"]})
    assert keys.keys["run"] == ("n",)
    assert keys.keys["next_problem"] == ()
    assert keys.faults == ("n is now the key of run, no longer of next problem (next_problem)",)


def test_two_actions_can_swap_keys() -> None:
    keys = keymap({"run": ["F"], "rerun": ["r"]})
    assert (keys.keys["run"], keys.keys["rerun"], keys.faults) == (("F",), ("r",), ())


def test_fault_in_a_keymap_is_reported_and_the_default_stays() -> None:
    keys = keymap({"runn": ["R"], "sort": ["no such key!"], "pane": ["1"]})
    assert keys.keys["sort"] == ("s",)
    assert keys.keys["pane"] == tuple("1234")
    assert "Did you mean run?" in keys.faults[0]
    assert len(keys.faults) == 3


def test_action_can_have_no_keys() -> None:
    assert keymap({"repeat": []}).keys["repeat"] == ()


def test_keys_page_is_current(repository: Path) -> None:
    assert (repository / "docs" / "keys.md").read_text(encoding="utf-8") == document(), (
        "run: python -m workbench.ui.actions > docs/keys.md"
    )
