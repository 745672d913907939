"""Evalsets under names that the workbench does not look for, recognised by the beginning of their content."""

import re
from pathlib import Path

from workbench.regular_file import open_regular

HEAD_BYTES = 16 * 1024
_CASES = re.compile(rb'"(?:eval_cases|evalCases|expected_tool_use)"\s*:')
_QUERY = re.compile(rb'"query"\s*:')
_ANSWER = re.compile(rb'"(?:reference|expected_intermediate_agent_responses)"\s*:')
_MARK = b"\xef\xbb\xbf"


def looks_like_evalset(path: Path) -> bool:
    """Whether the file begins like an evalset of today's schema or of one of the two old formats.

    Only so many bytes are read. A file that cannot be read is none: nobody asked for it.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    if _CASES.search(head):
        return True
    is_list = head.removeprefix(_MARK).lstrip().startswith(b"[")
    return is_list and bool(_QUERY.search(head)) and bool(_ANSWER.search(head))
