"""Messages about calls without a recording, without what differs from case to case.

`workbench.agents.worker.gate` and `matching` write these messages.
"""

import re

_CALL = re.compile(r"[^\n]{0,200}? called ([^\s(]{1,200})\([^\n]*?, which has no recording; ")
_DIFFERENCE = re.compile(r"nearest recording: [^\n]*?\) in turn \d+; ([^\n]{1,300}?) was ")
_MODEL = re.compile(r"([^\n]{1,200}?) asked its model what is not recorded: ")
_REQUEST = re.compile(r"its request \d+ has (another instruction|other tools|another config|the model)")
_INDEX = re.compile(r"\[\d+\]")
_TOO_MANY = ("a call with these arguments is recorded only ", "only ")


def miss_text(message: str) -> str:
    """Return a text such as `find_order: order differs from the recording`, or "" for another message."""
    if found := _CALL.match(message):
        why = message[found.end() :]
        if difference := _DIFFERENCE.match(why):
            return f"{found[1]}: {_INDEX.sub('[…]', difference[1])} differs from the recording"
        return f"{found[1]}: {_other(why, 'call')}"
    if found := _MODEL.match(message):
        why = message[found.end() :]
        request = _REQUEST.match(why)
        return f"model of {found[1]}: {f'{request[1]} than recorded' if request else _other(why, 'request')}"
    return ""


def _other(why: str, what: str) -> str:
    if why.startswith("its outcome was not recorded"):
        return "its outcome was not recorded"
    return f"more {what}s than recorded" if why.startswith(_TOO_MANY) else f"{what} is not in the recording"
