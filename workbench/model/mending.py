"""Brackets and quotes that do not match: which one is wrong, and how to read on.

Every mend is the reading that explains most of what follows (`brackets.best_reading`). In files that are indented, as
nearly all are, the indentation tells where a bracket is missing.
"""

import re

from workbench.model.brackets import best_reading, bracket_name, closing_of, misaligned, opening_of, outdented
from workbench.model.json_nodes import Child, Node
from workbench.model.open_frames import Frame, Reading, container, never_closed
from workbench.model.tokens import Lexer, Token

_UNCLOSED_KEY = re.compile(r"[\w $-]+(?=\s*:[\s\[{]*$)")


class Mender:
    """What the scanner turns to when a token cannot stand where it stands."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._text = reading.text
        self._complain = reading.complain
        self._last_surplus = -1
        self._blamed: set[int] = set()
        """Openers of which it has been said that nothing closes them."""

    # Missing openers, and closers that are too early

    def key_in_list(self, frame: Frame, key: Token, colon: Token) -> None:
        """A key where none can be: the list was not closed, a brace is missing before the key, or the object before it
        was closed too early. `frame` is a list or the text around the root."""
        reading = self._reading
        opened = reading.opened()
        readings = {"brace missing": opened + "{", "both braces missing": opened}
        last = frame.last
        if last is not None and last.node.kind == "object" and key.value not in frame.last_keys:
            readings = {"closed too early": opened + "{", **readings}
        if len(reading.frames) > 2 and reading.frames[-2].node.kind == "object":
            readings = {"list not closed": opened[:-1], **readings}
        best = list(readings)[best_reading(self._text, colon.end, readings.values())]
        if best == "list not closed":
            self._never_closed(frame, key)
            reading.close(last.node.end if last is not None else key.start)
        elif best == "closed too early":
            self._reopen(frame, key)
        else:
            place = "outside of any object" if frame is reading.outside else "in a list"
            self._complain(key.start, f"a key {place}", "A `{` is missing before it")
            node = Node("object", key.start, key.end)
            reading.add(frame, node)
            reading.open(Frame(node, "value", implicit=best == "both braces missing"))
        reading.top.key, reading.top.expect = key, "value"

    def key_for_value(self, frame: Frame, key: Token) -> None:
        """A key where the value of another key should be: that value is missing, or the brace before its members."""
        reading = self._reading
        opened = reading.opened()
        if best_reading(self._text, key.end, [opened, opened + "{"]) == 0:
            reading.value_is_missing(frame, reading.previous.end)
            return
        above = frame.key.value if frame.key else ""
        self._complain(reading.previous.end, f"a `{{` is missing here, after the key `{above}`")
        node = Node("object", key.start, key.end)
        reading.add(frame, node)
        reading.open(Frame(node, "first"))

    def value_without_key(self, frame: Frame, token: Token) -> None:
        """A value where an object expects a key, a comma or its end."""
        if token.kind not in ("{", "["):
            self._complain(token.start, "a value that has no key", "Expected a comma or `}`")
            return
        reading, parent = self._reading, self._reading.frames[-2]
        opened = reading.opened()
        readings = {"no key": opened + token.kind}
        if parent.node.kind == "array":
            readings = {"not closed": opened[:-1] + token.kind, **readings}
        if frame.expect == "key" and frame.last is not None and frame.last.node.kind == "object":
            readings = {**readings, "list not opened": opened + "[" + token.kind}
        best = list(readings)[best_reading(self._text, token.end, readings.values())]
        if best == "not closed":
            self._never_closed(frame, token)
            reading.close(reading.previous.end)
            reading.accept(parent, token)
        elif best == "list not opened" and frame.last is not None:
            self._open_list(frame.last, token)
        else:
            self._complain(token.start, f"a key is missing before this `{token.kind}`")
            reading.open(Frame(container(token), "first"))

    def goes_on_after(self, comma: Token) -> bool:
        """Whether a comma outside of everything belongs to the object before it, which was closed too early."""
        outside = self._reading.outside
        if outside.last is None or outside.last.node.kind != "object":
            return False
        ahead = Lexer(self._text, lambda *_, **__: None)
        ahead.position = comma.end
        token = ahead.next()
        if token.kind != "string" or not ahead.colon_follows(token):
            return False
        self._reopen(outside, comma)
        return True

    def _open_list(self, first: Child, token: Token) -> None:
        """What was taken for a member's value is the first item of a list whose bracket is missing."""
        reading, item = self._reading, first.node
        self._complain(item.start, "a `[` is missing before this: more items follow")
        first.node = Node("array", item.start, item.end, children=[Child(item, None, item.start, item.end)])
        listed = Frame(first.node, "value", count=1, last=first.node.children[0])
        reading.open(listed)
        reading.accept(listed, token)

    def _reopen(self, frame: Frame, token: Token) -> None:
        """The object that ended last goes on: the brace that closed it is one too many."""
        assert frame.last is not None  # the callers looked
        node = frame.last.node
        if self._last_surplus < node.end:
            self._complain(node.end - 1, "a surplus brace `}`: the object goes on after it", "Delete it")
        reopened = Frame(node, "key", comma=token.start, keys=frame.last_keys)
        reopened.last = node.children[-1] if node.children else None
        self._reading.open(reopened)

    # Closers

    def mismatch(self, frame: Frame, token: Token) -> bool:
        """A closer of the other kind than what is open: something inside was never closed, or the closer is surplus or
        mistaken. True if it closes the innermost container that is open now."""
        reading = self._reading
        opened = reading.opened()
        readings = {"surplus": opened, "mistaken": opened[:-1]}
        ancestor = opened.rfind(opening_of(token.kind))
        if ancestor >= 0:
            readings = {"not closed": opened[:ancestor], **readings}
        best = list(readings)[best_reading(self._text, token.end, readings.values())]
        if best == "not closed":
            while reading.top.bracket != opening_of(token.kind):
                self._never_closed(reading.top, token)
                reading.close(reading.previous.end)
            return True
        line = reading.line(frame)
        if best == "surplus":
            self._last_surplus = token.start
            hint = f"What is open here is the `{frame.bracket}` of line {line}"
            if token.kind == "]" and reading.previous.kind != "]" and frame.key is not None:
                hint = f"Or a `[` is missing after the key `{frame.key.value}`"
            self._complain(token.start, f"a surplus {bracket_name(token.kind)}", hint)
            return False
        needed = closing_of(frame.bracket)
        self._complain(
            token.start, f"`{token.kind}` where `{needed}` is needed, for the `{frame.bracket}` of line {line}"
        )
        return True

    def surplus_outside(self, token: Token) -> None:
        """A closer after the end of everything."""
        odd = misaligned(self._text, self._reading.places.indent) if self._last_surplus < 0 else None
        self._last_surplus = token.start
        line = self._reading.places.line(odd[1]) if odd else 0
        hint = f"The one of line {line} does not line up with its pair" if odd else "Delete it"
        self._complain(token.start, f"a surplus {bracket_name(token.kind)}: nothing is open here", hint)

    def still_open(self, opened: list[Frame], last: int) -> None:
        """Containers that are open at the end of the text, `last` being its last character."""
        reading = self._reading
        start = opened[0].node.start
        odd = outdented(self._text, reading.places.indent, start, len(self._text), self._blamed)
        if odd:
            self._blame(*odd)
            opened = opened[1:]
        if opened:
            shown = ", ".join(f"`{frame.bracket}` of line {reading.line(frame)}" for frame in opened[-4:])
            more = f" and {len(opened) - 4} more" if len(opened) > 4 else ""
            closers = "".join(closing_of(frame.bracket) for frame in reversed(opened[-40:]))
            message = f"the file ends here, and brackets are never closed: {shown}{more}"
            self._complain(last, message, f"Add `{closers}`")

    def _never_closed(self, frame: Frame, token: Token) -> None:
        """Say that a container is never closed: `frame`, or the one inside it that took its closer."""
        reading = self._reading
        odd = outdented(self._text, reading.places.indent, frame.node.start, token.start, self._blamed)
        if odd:
            self._blame(*odd)
        else:
            self._blamed.add(frame.node.start)
            self._complain(token.start, never_closed(frame.bracket, reading.line(frame)))

    def _blame(self, opener: int, place: int) -> None:
        self._blamed.add(opener)
        self._complain(place, never_closed(self._text[opener], self._reading.places.line(opener)))

    # Quotes

    def unclosed_key(self, token: Token) -> Token | None:
        """The key that was meant, if the quote that ends `token` is the one that begins its value."""
        match = _UNCLOSED_KEY.match(token.value) if token.quoted else None
        if match is None or not self._text.startswith(f'"{match.group()}', token.start):
            return None
        end = token.start + 1 + match.end()
        self._complain(token.start, "this key is never closed", 'A " is missing before the colon', certain=True)
        self._reading.lexer.position = end
        return Token("string", token.start, end, match.group(), quoted=True)

    def stray_quote(self, frame: Frame, token: Token) -> bool:
        """Whether the text that ended just before `token` holds a quote, or was never closed; then it is mended."""
        from workbench.model.near_json import end_of_line_text  # see `tokens`

        reading, text, child = self._reading, self._text, frame.last
        before = reading.previous
        touching = before.quoted and before.end == token.start and text[token.start] not in '"{['
        if not touching or child is None:
            return False
        reading.forget(token.start)
        if before.value.rstrip().endswith(","):
            comma = text.rindex(",", before.start, before.end)
            self._complain(before.start, "this text is never closed", 'A " is missing before the comma', certain=True)
            child.node.end, child.node.scalar = comma, before.value.rstrip()[:-1]
            reading.lexer.position = comma
            return True
        end = end_of_line_text(text, token.start)
        self._complain(before.end - 1, "a quote inside text", 'Write \\"', certain=True)
        child.node.end, child.node.scalar = end, text[before.start + 1 : end - 1]
        reading.lexer.position = end
        return True
