"""The first message of a case, read without validating the case."""

from workbench.files.evalset import EvalsetDocument, case_or_none
from workbench.files.spelling import get
from workbench.files.validation import read_json
from workbench.text.json_values import mapping, objects, parts_of, string


def first_message(document: EvalsetDocument, index: int) -> str:
    """Return what the user says first in a case, raw, or "" if it is not known.

    A list of 10,000 cases shows it, and reading a whole case takes much longer.
    """
    if document.format != "current":
        case = case_or_none(document, index)
        raw = {} if case is None else {"conversation": case.turns, "conversation_scenario": case.scenario}
    else:
        try:
            raw = mapping(read_json(document.text(index)))
        except (ValueError, IndexError):
            return ""
    conversation = get(raw, "conversation")
    turns = objects(list(conversation)) if isinstance(conversation, list | tuple) else []
    if turns:
        return "\n".join(filter(None, (string(part.get("text")) for part in parts_of(get(turns[0], "user_content")))))
    return string(get(mapping(get(raw, "conversation_scenario")), "starting_prompt"))
