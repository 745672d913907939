"""Every action of the screen, as one table.

Keymap, footer, help, palette and `docs/keys.md` are made from it. An action stands here only once its feature exists.
Keys are written as they are typed (`r`, `?`, `'`) or by name (`ctrl+d`, `space`, `enter`, `down`).

    python -m workbench.actions > docs/keys.md
"""

import difflib
import re
import string
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Where: TypeAlias = Literal[
    "main",
    "options",
    "editor",
    "conflict",
    "chat",
    "review",
    "criteria",
    "accept",
    "history",
    "stored",
    "compare",
    "triage",
]


@dataclass(frozen=True, slots=True)
class Action:
    """`id` names it in the keymap of the user's settings; `label` is for footer and palette (two or three words),
    `help` is one sentence. `footer` > 0 puts it into the footer, small numbers first. No keys: palette only."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: str
    footer: int = 0
    where: Where = "main"


@dataclass(frozen=True, slots=True)
class Keymap:
    """Which keys each action has after the user's settings: `keys[action id]`, and what was wrong with them."""

    keys: Mapping[str, tuple[str, ...]]
    faults: tuple[str, ...] = ()


MOVE, PANES, MARK, RUN, FIND, COPY, GENERAL = "Move", "Panes", "Mark", "Run", "Find", "Copy", "General"
EDIT = "Edit"
EDITOR = "In the editor"
CHAT = "In a conversation, outside the message"
REVIEW = "Before a conversation is kept"
CONFLICT = "Where somebody else changed the file"
ACCEPT = "Where what the agent did is accepted"
OPTIONS = "In the options of the run"
CRITERIA = "In the form of the criteria"
TRIAGE = "Where a verdict is triaged"
HISTORY = "In the history"
STORED = "In a run of the history"
COMPARE = "Where two runs are compared"
DIGITS = tuple("123456789")

ACTIONS: tuple[Action, ...] = (
    Action("move_down", ("j", "down"), "down", "One line down.", MOVE),
    Action("move_up", ("k", "up"), "up", "One line up.", MOVE),
    Action("page_down", ("ctrl+d", "pagedown"), "page down", "Half a page down.", MOVE),
    Action("page_up", ("ctrl+u", "pageup"), "page up", "Half a page up.", MOVE),
    Action("top", ("g", "home"), "top", "To the first line.", MOVE),
    Action("bottom", ("G", "end"), "bottom", "To the last line.", MOVE),
    Action("open", ("l", "right"), "open", "Opens the row, then goes one in; in a pane: unfolds what is folded.", MOVE),
    Action("close", ("h", "left"), "close", "Closes the row, then goes one out; in a pane: folds, then back.", MOVE),
    Action("enter", ("enter",), "go in", "Opens or closes a row; on a case: into its panes.", MOVE),
    Action("back", ("escape",), "back", "One step back: out of a pane, a mark, a filter. Never quits.", MOVE),
    Action("next_turn", ("}",), "next turn", "To the next turn of the conversation.", MOVE),
    Action("previous_turn", ("{",), "previous turn", "To the previous turn of the conversation.", MOVE),
    Action("pane", DIGITS, "pane", "The pane of the case, in the order shown.", PANES),
    Action("next_pane", ("tab",), "other side", "Between the cases and the panes.", PANES),
    Action("previous_pane", ("shift+tab",), "other side, backwards", "Between the cases and the panes.", PANES),
    Action("jump", ("'",), "jump", "One more key, and you are in that pane.", PANES),
    Action("maximise", ("z",), "maximise", "Gives the whole screen to the side you are in; once more: back.", PANES),
    Action("hide_tree", ("b",), "hide tree", "Hides the cases; once more: back.", PANES),
    Action("mark", ("space",), "mark", "Marks the case, or all below the row; once more: unmarks.", MARK),
    Action("mark_range", ("v",), "mark range", "Starts a range; move, then v or space marks it, esc drops it.", MARK),
    Action("mark_all", ("a",), "mark all", "Marks every case that the filter lets through; once more: unmarks.", MARK),
    Action(
        "run", ("r",), "run", "Runs the marked cases, or what is under the cursor with all below it.", RUN, footer=1
    ),
    Action("rerun", ("F",), "run failed", "Runs again what failed and what ended in an error.", RUN, footer=2),
    Action(
        "repeat",
        ("X",),
        "repeat",
        "Runs the marked or current cases N times, or until it is sure how often they pass.",
        RUN,
    ),
    Action(
        "score",
        ("S",),
        "score again",
        "Scores the marked or current cases again by the criteria of now, without running the agent.",
        RUN,
    ),
    Action(
        "score_afresh",
        ("ctrl+r",),
        "ask judges afresh",
        "Like scoring again, but judges are asked also what they have answered before.",
        RUN,
    ),
    Action(
        "watch",
        ("w",),
        "watch",
        "Watches all or the marked cases: a save runs what it can affect. Once more: off, or runs what waits.",
        RUN,
    ),
    Action("watch_off", (), "watch off", "Stops watching, also while something waits for its cost.", RUN),
    Action("watched", (), "what is watched", "The files that are watched, and why.", RUN),
    Action("options", ("o",), "options", "Criteria, thresholds and judges of the run to come.", RUN, footer=5),
    Action("cancel", ("x",), "cancel", "Cancels the marked or current cases; once more: kills them.", RUN),
    Action(
        "cancel_all", (), "cancel the run", "No new case starts, those running are cancelled; once more: killed.", RUN
    ),
    Action(
        "resume",
        (),
        "resume the run",
        "Goes on with the newest run where it was interrupted, if nothing that determines it has changed.",
        RUN,
    ),
    Action(
        "next_problem", ("n",), "next problem", "To the next case that failed or ended in an error.", FIND, footer=3
    ),
    Action("previous_problem", ("N",), "previous problem", "To the previous case that failed or erred.", FIND),
    Action(
        "next_changed",
        ("]",),
        "next change",
        "To the next case whose verdict changed, regressions first, with before and after.",
        FIND,
    ),
    Action("previous_changed", ("[",), "previous change", "To the previous case whose verdict changed.", FIND),
    Action(
        "filter",
        ("/",),
        "filter",
        "Text, :fail :error :pass :flaky :stale :changed :marked …, metric<0.8; all must hold.",
        FIND,
        footer=4,
    ),
    Action("history", ("H",), "history", "The runs that are kept, also those of adk eval and adk web.", FIND),
    Action("compare", ("C",), "compare", "What changed between the last run and the baseline, or any other.", FIND),
    Action("sort", ("s",), "sort", "By file, status, score, time, and again by file.", FIND),
    Action("found", (), "what check found", "What would cost a run to find out; enter goes to its place.", FIND),
    Action("edit", ("e",), "edit", "Edits the case, or the evalset's id, name and description.", EDIT),
    Action("edit_outside", ("E",), "edit in $EDITOR", "Opens the case's JSON in your own editor.", EDIT),
    Action("new_case", ("+",), "new case", "Makes a case in the evalset under the cursor.", EDIT),
    Action("new_scenario", (), "new scenario", "Makes a case that a simulated user plays by a plan.", EDIT),
    Action("duplicate", ("d",), "duplicate", "Makes a copy of the marked or current cases.", EDIT),
    Action("delete", ("D",), "delete", "Deletes the marked or current cases; u brings them back.", EDIT),
    Action("move_cases", ("m",), "move to …", "Moves the marked or current cases to another evalset.", EDIT),
    Action("rename", (), "rename the case", "Gives the case another id.", EDIT),
    Action("new_evalset", (), "new evalset", "Makes an empty evalset beside the current one.", EDIT),
    Action("new_test_file", (), "new test file", "Makes an empty test file beside the current evalset.", EDIT),
    Action("migrate", (), "migrate the evalset", "Makes a file of today's schema of one in an old format.", EDIT),
    Action("talk", ("T",), "talk", "Talks to the agent; what was said can be kept as a case.", EDIT),
    Action("keep_run", (), "keep as case", "Makes a case of what the agent did in the last run of this one.", EDIT),
    Action("keep_session", (), "case from a session", "Makes a case of a session that ADK saved as JSON.", EDIT),
    Action("criteria", ("c",), "criteria", "The criteria that hold for the evalset, in a form.", EDIT),
    Action(
        "accept", ("A",), "accept actual", "Makes what the agent did what is expected, difference by difference.", EDIT
    ),
    Action(
        "triage",
        ("t",),
        "triage",
        "Says what the verdict, or the label under the cursor, is worth: agent bug, expectation wrong, judge wrong …",
        EDIT,
    ),
    Action(
        "pictures", (), "pictures", "Scores, pass rate over runs, slowest and dearest cases, below the cursor.", FIND
    ),
    Action("agreement", (), "judge agreement", "How far judges agree with what you said of their verdicts.", FIND),
    Action("undo", ("u",), "undo", "Takes the last edit back, also one of an earlier session.", EDIT),
    Action("redo", ("U",), "redo", "Makes the edit again that was taken back last.", EDIT),
    Action("copy_id", ("y",), "copy id", "Copies the id of the case, the path of the file or of the agent.", COPY),
    Action("copy", ("Y",), "copy", "Copies what is under the cursor: a case's JSON, or what the pane shows.", COPY),
    Action(
        "palette", (":", "ctrl+p"), "palette", "All actions, all themes, and every case by name.", GENERAL, footer=6
    ),
    Action("keys", ("?",), "keys", "The keys that work here; enter does what is marked.", GENERAL, footer=7),
    Action("theme", (), "theme", "Choose a theme; it shows as you move.", GENERAL),
    Action("screenshot", (), "save a screenshot", "Saves the screen as an SVG, where you say.", GENERAL),
    Action("reload", (), "read the folder again", "Takes in files that came, went or changed.", GENERAL),
    Action("ignored", (), "what was ignored", "Files and folders that were passed over, and why.", GENERAL),
    Action("choose_agent", (), "choose the agent", "Says which agent an evalset belongs to; kept.", GENERAL),
    Action("notices", (), "notices", "What the last run wanted you to know.", GENERAL),
    Action("quit", ("q", "ctrl+c"), "quit", "Leaves; asks once while a run is going.", GENERAL),
    Action(
        "option_toggle",
        ("space",),
        "on, off",
        "Takes the criterion into the run, or leaves it out.",
        OPTIONS,
        1,
        "options",
    ),
    Action("option_more", ("+", "="), "higher", "Raises the threshold by 0.05.", OPTIONS, 2, "options"),
    Action("option_less", ("-",), "lower", "Lowers the threshold by 0.05.", OPTIONS, 3, "options"),
    Action("option_match", ("m",), "match", "EXACT, IN_ORDER, ANY_ORDER, and again.", OPTIONS, 4, "options"),
    Action("option_judge", ("e",), "judge", "Chooses the model that judges.", OPTIONS, 5, "options"),
    Action("option_oftener", ("]",), "oftener", "Asks the judge once more for each question.", OPTIONS, 0, "options"),
    Action("option_less_often", ("[",), "less", "Asks the judge once less for each question.", OPTIONS, 0, "options"),
    Action(
        "option_save",
        ("s",),
        "save",
        "Writes the changes into the config file, and nothing else in it.",
        OPTIONS,
        6,
        "options",
    ),
    Action("option_reset", ("R",), "reset", "Takes back every change to the criteria.", OPTIONS, 7, "options"),
    Action("edit_row", ("e",), "edit", "Edits the value under the cursor.", EDITOR, 1, "editor"),
    Action("edit_add", ("+",), "add", "Adds a turn, a call, a text, a rubric …", EDITOR, 2, "editor"),
    Action("edit_duplicate", ("d",), "duplicate", "Doubles the turn, call, message or rubric.", EDITOR, 3, "editor"),
    Action("edit_remove", ("D",), "delete", "Deletes the turn, call, message or rubric.", EDITOR, 4, "editor"),
    Action("edit_earlier", ("<", "K"), "earlier", "Moves it one place up in its list.", EDITOR, 0, "editor"),
    Action("edit_later", (">", "J"), "later", "Moves it one place down in its list.", EDITOR, 0, "editor"),
    Action("edit_undo", ("u",), "undo", "Takes the last edit back.", EDITOR, 5, "editor"),
    Action("edit_redo", ("U",), "redo", "Makes the edit again that was taken back last.", EDITOR, 0, "editor"),
    Action("edit_whole", ("E",), "in $EDITOR", "Opens the whole case in your own editor.", EDITOR, 6, "editor"),
    Action("chat_write", ("enter",), "write", "Back to the message.", CHAT, 1, "chat"),
    Action("chat_keep", ("+",), "keep as case", "Makes a case of it, after a look at what goes in.", CHAT, 2, "chat"),
    Action("chat_anew", ("r",), "anew", "Begins a new conversation, in a new process.", CHAT, 3, "chat"),
    Action("chat_initial", ("e",), "initial state", "What the session begins with, as JSON.", CHAT, 4, "chat"),
    Action("chat_stop", ("x",), "stop", "Stops the turn; once more kills the agent.", CHAT, 5, "chat"),
    Action("chat_full", ("z",), "in full", "Shows all of long texts; once more: their beginnings.", CHAT, 6, "chat"),
    Action("review_toggle", ("space",), "in, out", "Takes it into the case, or leaves it out.", REVIEW, 1, "review"),
    Action("review_change", ("e",), "change", "Another id, another file, the other shape.", REVIEW, 2, "review"),
    Action("review_all", ("a",), "all turns", "Takes all turns in; once more: none.", REVIEW, 3, "review"),
    Action("review_write", ("s",), "write", "Writes the case into the file.", REVIEW, 4, "review"),
    Action("conflict_toggle", ("space",), "the other", "Takes the other version.", CONFLICT, 1, "conflict"),
    Action("conflict_theirs", ("h", "left"), "theirs", "Takes their version.", CONFLICT, 2, "conflict"),
    Action("conflict_mine", ("l", "right"), "mine", "Takes your version.", CONFLICT, 3, "conflict"),
    Action("conflict_all", ("a",), "all so", "Takes the same side for every case.", CONFLICT, 4, "conflict"),
    Action("criteria_edit", ("e",), "edit", "Edits the value under the cursor.", CRITERIA, 1, "criteria"),
    Action("criteria_more", ("+", "="), "higher", "Raises the threshold by 0.05.", CRITERIA, 2, "criteria"),
    Action("criteria_less", ("-",), "lower", "Lowers the threshold by 0.05.", CRITERIA, 3, "criteria"),
    Action("criteria_more_fine", ("]",), "a little higher", "Raises the threshold by 0.01.", CRITERIA, 0, "criteria"),
    Action("criteria_less_fine", ("[",), "a little lower", "Lowers the threshold by 0.01.", CRITERIA, 0, "criteria"),
    Action("criteria_next", ("space",), "next choice", "The next of the choices, yes or no.", CRITERIA, 0, "criteria"),
    Action("criteria_add", ("a",), "add", "Adds a criterion, a preset or a rubric.", CRITERIA, 4, "criteria"),
    Action(
        "criteria_remove",
        ("D",),
        "delete",
        "Takes out the criterion, the rubric or the value: then its default holds.",
        CRITERIA,
        5,
        "criteria",
    ),
    Action("criteria_earlier", ("<", "K"), "earlier", "Moves the rubric one place up.", CRITERIA, 0, "criteria"),
    Action("criteria_later", (">", "J"), "later", "Moves the rubric one place down.", CRITERIA, 0, "criteria"),
    Action("criteria_save", ("s",), "save", "Writes the file, and nothing else in it.", CRITERIA, 7, "criteria"),
    Action("criteria_undo", ("u",), "undo", "Takes the last change in the form back.", CRITERIA, 6, "criteria"),
    Action("criteria_reset", ("R",), "reset", "Takes back every change since the last save.", CRITERIA, 0, "criteria"),
    Action("accept_toggle", ("space",), "choose", "Chooses the difference, the turn or the case.", ACCEPT, 1, "accept"),
    Action("accept_all", ("a",), "all", "Chooses everything; once more: nothing.", ACCEPT, 2, "accept"),
    Action("triage_agent", ("a",), "agent bug", "The agent did wrong.", TRIAGE, 0, "triage"),
    Action("triage_expectation", ("e",), "expectation wrong", "What is expected is wrong.", TRIAGE, 0, "triage"),
    Action("triage_judge", ("j",), "judge wrong", "The verdict is wrong for this answer.", TRIAGE, 0, "triage"),
    Action("triage_flaky", ("f",), "flaky", "Sometimes so, sometimes so.", TRIAGE, 0, "triage"),
    Action("triage_stays", ("w",), "won't fix", "It stays as it is.", TRIAGE, 0, "triage"),
    Action("triage_right", ("r",), "right", "The verdict is right.", TRIAGE, 0, "triage"),
    Action("triage_number", DIGITS, "the n-th", "What stands in that line.", TRIAGE, 0, "triage"),
    Action("triage_note", ("n",), "note", "To the note; enter comes back.", TRIAGE, 1, "triage"),
    Action("triage_about", ("tab",), "other", "Of the label, a criterion or the case.", TRIAGE, 2, "triage"),
    Action("triage_on", ("space",), "on", "Asks about the next problem at once.", TRIAGE, 3, "triage"),
    Action("triage_back", ("D", "backspace"), "unsay", "Takes back what was said.", TRIAGE, 4, "triage"),
    Action("history_open", ("enter", "l", "right"), "open", "Opens the run as it was.", HISTORY, 1, "history"),
    Action(
        "history_compare",
        ("C",),
        "compare",
        "Compares the two marked runs; the run with the marked one; else with the baseline or the run before it.",
        HISTORY,
        2,
        "history",
    ),
    Action(
        "history_mark", ("space",), "mark", "Marks the run, two at most; once more: unmarks.", HISTORY, 3, "history"
    ),
    Action("history_pin", ("p",), "baseline", "Makes the run the baseline; once more: none is.", HISTORY, 4, "history"),
    Action("history_filter", ("/",), "filter", "Text, :fail :error :baseline :adk …", HISTORY, 5, "history"),
    Action("history_delete", ("D",), "delete", "Deletes the run for good, after a question.", HISTORY, 6, "history"),
    Action("history_copy", ("y",), "copy id", "Copies the id of the run.", HISTORY, 0, "history"),
    Action("history_keys", ("?",), "keys", "The keys that work here.", HISTORY, 7, "history"),
    Action("stored_next", ("n",), "next problem", "To the next case that failed or erred.", STORED, 1, "stored"),
    Action("stored_previous", ("N",), "previous problem", "To the previous one.", STORED, 0, "stored"),
    Action("stored_filter", ("/",), "filter", "Text, :fail :error :pass", STORED, 2, "stored"),
    Action("stored_keep", ("+",), "keep as case", "Makes a case of what the agent did then.", STORED, 3, "stored"),
    Action(
        "stored_compare", ("C",), "compare", "Compares it with the baseline or the run before it.", STORED, 4, "stored"
    ),
    Action("stored_go", ("o",), "case of now", "To the case as it is now, in the tree.", STORED, 5, "stored"),
    Action("stored_copy", ("y",), "copy id", "Copies the id of the case.", STORED, 0, "stored"),
    Action("stored_copy_shown", ("Y",), "copy", "Copies what the pane shows.", STORED, 0, "stored"),
    Action("stored_keys", ("?",), "keys", "The keys that work here.", STORED, 6, "stored"),
    Action("compare_next", ("n", "]"), "next", "To the next case that changed.", COMPARE, 1, "compare"),
    Action("compare_previous", ("N", "["), "previous", "To the previous case that changed.", COMPARE, 0, "compare"),
    Action("compare_swap", ("C",), "other way", "Takes the later run for the earlier one.", COMPARE, 2, "compare"),
    Action("compare_go", ("o",), "case of now", "To the case as it is now, in the tree.", COMPARE, 3, "compare"),
    Action("compare_copy", ("y",), "copy id", "Copies the id of the case.", COMPARE, 0, "compare"),
    Action("compare_keys", ("?",), "keys", "The keys that work here.", COMPARE, 4, "compare"),
)
BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}

_RENAMED = {
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "low_line": "underscore",
    "plus_sign": "plus",
    "reverse_solidus": "backslash",
    "solidus": "slash",
}
_SHOWN = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→"}
_KEY = re.compile(r"((ctrl|shift|alt|super)\+)*([a-z][a-z0-9_]*|[A-Z0-9])")


def key_name(key: str) -> str:
    """The name under which the terminal library reports `key`: `?` is `question_mark`, letters are themselves."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace(" ", "_").replace("-", "_")
    return _RENAMED.get(name, name)


_SIGNS = {key_name(sign): sign for sign in string.punctuation}


def key_label(key: str) -> str:
    """`key` as people write it: `question_mark` is `?`, `escape` is `esc`."""
    return _SHOWN.get(key, _SIGNS.get(key, key))


def keymap(overrides: Mapping[str, Iterable[str]] | None = None) -> Keymap:
    """The keys of all actions: the table's, with the user's `overrides` (action id → keys) in place of them.

    A key wanted twice in one place goes to the action the user gave it to (the first of two), and the other one loses
    it; each such case, each unknown action and each key that is none is a sentence in `faults`.
    """
    faults: list[str] = []
    wanted = dict(_valid_overrides(overrides or {}, faults))
    keys: dict[str, tuple[str, ...]] = {}
    taken: dict[tuple[Where, str], str] = {}
    for action in sorted(ACTIONS, key=lambda row: row.id not in wanted):
        free: list[str] = []
        for key in wanted.get(action.id, tuple(map(key_name, action.keys))):
            owner = taken.setdefault((action.where, key), action.id)
            if owner == action.id:
                free.append(key)
            else:
                faults.append(f"{key_label(key)} is {BY_ID[owner].label}: {action.label} ({action.id}) has lost it")
        keys[action.id] = tuple(free)
    return Keymap(keys, tuple(faults))


def footer(where: Where = "main") -> list[Action]:
    """The actions that the footer shows, in its order."""
    return sorted((row for row in ACTIONS if row.footer and row.where == where), key=lambda row: row.footer)


def document() -> str:
    """The text of `docs/keys.md`."""
    lines = [
        "# Keys",
        "",
        "Made from `workbench/actions.py` by `python -m workbench.actions > docs/keys.md`. Letters act outside text "
        "fields; nothing needs a mouse.",
        "",
        "Your own keys stand in the settings file (`agent-workbench --help` names it), by the name in the last column:",
        "",
        "```toml",
        "[keys]",
        'run = "R"',
        'next_problem = ["n", "ctrl+n"]',
        "```",
        "",
        "A key given to two actions goes to the one you named; the screen says once which action lost it.",
    ]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines += ["", f"## {group}", "", "| key | action | name |", "|---|---|---|"]
        lines += [_document_row(action) for action in ACTIONS if action.group == group]
    return "\n".join(lines) + "\n"


def _document_row(action: Action) -> str:
    keys = "1 … 9" if action.keys == DIGITS else " ".join(_code(key_label(key)) for key in action.keys)
    return f"| {keys or 'palette only'} | {action.help.replace('|', chr(92) + '|')} | `{action.id}` |"


def _code(key: str) -> str:
    return f"`{key}`"


def _valid_overrides(
    overrides: Mapping[str, Iterable[str]], faults: list[str]
) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name, keys in overrides.items():
        if name == "pane":
            faults.append("the panes keep their digits")
            continue
        if name not in BY_ID:
            near = difflib.get_close_matches(name, BY_ID, n=1)
            faults.append(f"no action is called {name}" + (f"; the nearest is {near[0]}" if near else ""))
            continue
        named = [key_name(key) for key in keys]
        odd = [key for key in named if not _KEY.fullmatch(key)]
        faults += [f"{key!r} is not a key (for {name})" for key in odd]
        if len(odd) < len(named) or not named:
            yield name, tuple(dict.fromkeys(key for key in named if key not in odd))


if __name__ == "__main__":
    sys.stdout.write(document())
