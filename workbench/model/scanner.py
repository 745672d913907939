"""One tolerant JSON scanner that knows offsets: all faults of a text, at their places, and the tree that was meant.

Python's and pydantic's readers are faster and stop at the first fault, so they read what is in order; this one is for
what is not, and for the places of values in a text that is.
"""

from dataclasses import dataclass
from typing import Literal

from workbench.model.brackets import best_reading, bracket_name, closing_of, misaligned, opening_of
from workbench.model.json_nodes import Node
from workbench.model.open_frames import DEEPEST, Flaw, Frame, Notebook
from workbench.model.places import Places
from workbench.model.tokens import Lexer, Token


@dataclass(frozen=True)
class Scan:
    """`root` is None where the text holds no value at all."""

    root: Node | None
    flaws: tuple[Flaw, ...]


def scan(text: str, *, places: Places | None = None, keep: bool = True, depth: int = 0) -> Scan:
    """Read `text`, whatever it holds. Never raises; a text that is not JSON has at least one flaw of severity error.

    `places` knows the lines of `text` if it is a piece of a file. Without `keep` there is no tree, only flaws, and
    memory does not grow with the text. `depth` is how many brackets are open around a piece of a file.
    """
    return _Scanner(text, places or Places(text), keep, depth).run()


class _Scanner:
    """A state machine over tokens: each open container is a frame, `_outside` stands for the text around the root."""

    def __init__(self, text: str, places: Places, keep: bool, depth: int) -> None:
        self._text = text
        self._places = places
        self._keep = keep
        self._deepest_frames = DEEPEST + 1 - depth
        self._outside = Frame(Node("missing", 0, len(text)), "value")
        self._frames = [self._outside]
        self._notes = Notebook(self._frames)
        self._complain = self._notes.complain
        self._lexer = Lexer(text, self._complain)
        self._previous = Token("end", 0, 0)
        self._last_surplus = -1
        self._never_closed_at: set[int] = set()
        self._misaligned: dict[str, tuple[int, int] | None] = {}

    def run(self) -> Scan:
        while not self._notes.full:
            token = self._lexer.next()
            if token.kind == "end":
                self._finish()
                break
            self._take(token)
            self._previous = token
        root = self._outside.last.node if self._outside.last else None
        return Scan(root, self._notes.flaws())

    def _take(self, token: Token) -> None:
        frame = self._frames[-1]
        match token.kind:
            case ",":
                self._comma(frame, token)
            case ":":
                self._colon(frame, token)
            case "}" | "]":
                self._closer(frame, token)
            case _ if frame is self._outside:
                self._outer_value(token)
            case _ if frame.node.kind == "object":
                self._in_object(frame, token)
            case _:
                self._in_list(frame, token)

    # Values

    def _outer_value(self, token: Token) -> None:
        if self._outside.expect == "value":
            self._accept(self._outside, token)
            return
        if not self._outside.closed_for_good:
            self._outside.closed_for_good = True
            self._complain(token.start, "text after the end of the JSON", "A file holds one JSON value")
        if token.kind in ("{", "["):
            self._open(_container(token))

    def _in_list(self, frame: Frame, token: Token) -> None:
        if frame.expect == "comma":
            if self._stray_quote(frame, token):
                return
            self._complain(
                self._previous.end,
                "a comma is missing here",
                f"Between two items of a list{self._since(token)}",
                certain=True,
            )
        self._accept(frame, token)

    def _in_object(self, frame: Frame, token: Token) -> None:
        is_key = token.kind not in ("{", "[") and self._lexer.colon_follows(token)
        if frame.implicit and frame.expect in ("key", "comma") and not is_key:
            self._frames.pop()
            self._take(token)
        elif frame.expect in ("first", "key"):
            self._key(frame, token)
        elif frame.expect in ("colon", "value") and is_key:
            self._value_is_missing(frame, self._previous.end)
            self._key(frame, token)
        elif frame.expect == "colon":
            self._complain(self._previous.end, "a colon is missing after this key", certain=True)
            self._accept(frame, token)
        elif frame.expect == "value":
            self._accept(frame, token)
        elif is_key:
            self._complain(
                self._previous.end, "a comma is missing here", f"Before the key `{token.value}`", certain=True
            )
            self._key(frame, token)
        elif not self._stray_quote(frame, token):
            self._value_without_key(frame, token)

    def _key(self, frame: Frame, token: Token) -> None:
        if token.kind in ("{", "["):
            self._value_without_key(frame, token)
            return
        key = token.value if isinstance(token.value, str) else self._text[token.start : token.end]
        if token.kind == "number" or (token.kind == "word" and token.value is not key):
            self._complain(token.start, "a key must be text in double quotes", f'Write "{key}"')
        frame.key = Token("string", token.start, token.end, key)
        frame.expect = "colon"
        if key in frame.keys:
            first = self._places.line(frame.keys[key])
            message = f"`{key}` stands twice in this object: this one counts, the one of line {first} is dropped"
            self._complain(token.start, message, severity="warning")
        frame.keys[key] = token.start

    def _value_without_key(self, frame: Frame, token: Token) -> None:
        """A value where an object expects a key, a comma or its end."""
        if token.kind in ("{", "["):
            opened = self._opened()
            parent = self._frames[-2]
            in_list = parent.node.kind == "array"
            readings = [opened[:-1] + token.kind, opened + token.kind] if in_list else [opened + token.kind]
            if in_list and best_reading(self._text, token.end, readings) == 0:
                self._never_closed(frame, token)
                self._frames.pop()
                self._accept(parent, token)
                return
            self._complain(token.start, f"a key is missing before this `{token.kind}`")
            self._open(_container(token))
        else:
            self._complain(token.start, "a value that has no key", "Expected a comma or `}`")

    def _accept(self, frame: Frame, token: Token) -> None:
        if token.kind in ("{", "["):
            node = _container(token)
            frame.add(node, self._keep)
            self._open(node)
        else:
            frame.add(Node(token.kind, token.start, token.end, token.value), self._keep)  # type: ignore[arg-type]

    def _open(self, node: Node) -> None:
        self._frames.append(Frame(node, "first"))
        if len(self._frames) == self._deepest_frames + 1:
            self._complain(node.start, f"nested deeper than {DEEPEST} levels: ADK's reader gives up here")

    # Marks

    def _comma(self, frame: Frame, token: Token) -> None:
        if frame is self._outside:
            if frame.expect == "end" and self._object_goes_on(token):
                self._reopen(frame, token)
            else:
                self._complain(token.start, "a comma outside of everything", "Delete it")
        elif frame.expect in ("colon", "value") and frame.node.kind == "object":
            self._value_is_missing(frame, token.start)
            frame.expect, frame.comma = "key", token.start
        elif frame.expect != "comma":
            twice = frame.expect in ("key", "value")
            self._complain(
                token.start,
                "two commas in a row" if twice else "a comma with nothing before it",
                "Delete it",
                certain=True,
            )
        else:
            frame.expect = "key" if frame.node.kind == "object" else "value"
            frame.comma = token.start

    def _colon(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect == "colon":
            frame.expect = "value"
            return
        key = frame.last
        if frame.node.kind == "object" or key is None or key.node.kind != "string" or frame.expect == "value":
            self._complain(token.start, "a colon with no key before it")
            return
        frame.drop_last()
        self._key_in_list(frame, Token("string", key.node.start, key.node.end, key.node.scalar), token)

    def _key_in_list(self, frame: Frame, key: Token, colon: Token) -> None:
        """A key where none can be: the object before it was closed too early, the list was not closed, or a brace is
        missing before the key."""
        opened = self._opened()
        readings = {"brace missing": opened}
        if frame.last is not None and frame.last.node.kind == "object":
            readings = {"closed too early": opened + "{", **readings}
        if len(self._frames) > 2 and self._frames[-2].node.kind == "object":
            readings = {"list not closed": opened[:-1], **readings}
        match list(readings)[best_reading(self._text, colon.end, readings.values())]:
            case "list not closed":
                self._never_closed(frame, key)
                frame.node.end = frame.last.node.end if frame.last else key.start
                self._frames.pop()
            case "closed too early":
                self._reopen(frame, key)
            case _:
                place = "in a list" if frame is not self._outside else "outside of any object"
                self._complain(key.start, f"a key {place}", "A `{` is missing before it")
                node = Node("object", key.start, key.end)
                frame.add(node, self._keep)
                self._frames.append(Frame(node, "value", implicit=True))
        self._frames[-1].key, self._frames[-1].expect = key, "value"

    def _reopen(self, frame: Frame, token: Token) -> None:
        """The object that ended last goes on: the brace that closed it is one too many."""
        assert frame.last is not None  # the callers looked
        node = frame.last.node
        if self._last_surplus < node.end:
            self._complain(node.end - 1, "a surplus brace `}`: the object goes on after it", "Delete it")
        reopened = Frame(node, "key", comma=token.start)
        reopened.last = node.children[-1] if node.children else None
        self._frames.append(reopened)

    def _closer(self, frame: Frame, token: Token) -> None:
        if frame.implicit:
            frame.node.end = self._previous.end
            self._frames.pop()
            self._closer(self._frames[-1], token)
        elif frame is self._outside:
            odd = self._odd_pair("closer")
            hint = f"The one of line {self._places.line(odd[1])} does not line up with its pair" if odd else "Delete it"
            self._complain(token.start, f"a surplus {bracket_name(token.kind)}: nothing is open here", hint)
        elif closing_of(frame.bracket) == token.kind:
            self._close(frame, token)
        else:
            self._mismatch(frame, token)

    def _close(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._value_is_missing(frame, token.start)
        elif frame.expect in ("key", "value"):
            frame.expect = "comma"
            # What is left out ("...") has been told already, and the comma goes with it.
            if not self._text[frame.comma + 1 : token.start].lstrip().startswith(("..", "…")):
                self._complain(frame.comma, f"a trailing comma before `{token.kind}`", "Delete it", certain=True)
        frame.node.end = token.end
        self._frames.pop()

    def _mismatch(self, frame: Frame, token: Token) -> None:
        opened = self._opened()
        surplus, mistaken = opened, opened[:-1]
        readings = [surplus, mistaken]
        ancestor = opened.rfind(opening_of(token.kind))
        if ancestor >= 0:
            readings.insert(0, opened[:ancestor])
        best = readings[best_reading(self._text, token.end, readings)]
        if ancestor >= 0 and best is readings[0]:
            while self._frames[-1].bracket != opening_of(token.kind):
                self._never_closed(self._frames[-1], token)
                self._frames.pop().node.end = self._previous.end
            self._close(self._frames[-1], token)
        elif best is surplus:
            line = self._places.line(frame.node.start)
            self._last_surplus = token.start
            open_here = f"What is open here is the `{frame.bracket}` of line {line}"
            self._complain(token.start, f"a surplus {bracket_name(token.kind)}", open_here)
        else:
            line = self._places.line(frame.node.start)
            needed = closing_of(frame.bracket)
            self._complain(
                token.start, f"`{token.kind}` where `{needed}` is needed, for the `{frame.bracket}` of line {line}"
            )
            self._close(frame, token)

    def _finish(self) -> None:
        """The end of the text: what is still open is closed here."""
        last = max(len(self._text.rstrip(" \t\r\n")) - 1, 0)
        opened = [frame for frame in self._frames[1:] if not frame.implicit]
        if opened:
            self._still_open(opened, last)
        elif self._outside.last is None:
            empty = not self._text.strip(" \t\r\n")
            self._complain(last, "the file is empty" if empty else "the file holds no JSON value")
        for frame in self._frames[1:]:
            frame.node.end = last + 1

    def _still_open(self, opened: list[Frame], last: int) -> None:
        odd = self._odd_pair("opener")
        if odd:
            bracket = self._text[odd[0]]
            message = f"a `{closing_of(bracket)}` is missing before this: the `{bracket}` of line"
            self._complain(odd[1], f"{message} {self._places.line(odd[0])} is never closed")
            opened = opened[1:]
        if opened:
            shown = ", ".join(
                f"`{frame.bracket}` of line {self._places.line(frame.node.start)}" for frame in opened[-4:]
            )
            more = f" and {len(opened) - 4} more" if len(opened) > 4 else ""
            closers = "".join(closing_of(frame.bracket) for frame in reversed(opened[-40:]))
            self._complain(
                last, f"the file ends here, and brackets are never closed: {shown}{more}", f"Add `{closers}`"
            )

    def _odd_pair(self, deeper: Literal["opener", "closer"]) -> tuple[int, int] | None:
        if deeper not in self._misaligned:
            self._misaligned[deeper] = misaligned(self._text, self._places.indent, deeper, self._never_closed_at)
        return self._misaligned[deeper]

    # Complaints that several states have

    def _opened(self) -> str:
        return "".join(frame.bracket for frame in self._frames[1:] if not frame.implicit)

    def _never_closed(self, frame: Frame, token: Token) -> None:
        self._never_closed_at.add(frame.node.start)
        missing, line = closing_of(frame.bracket), self._places.line(frame.node.start)
        self._complain(
            token.start, f"a `{missing}` is missing before this: the `{frame.bracket}` of line {line} is never closed"
        )

    def _value_is_missing(self, frame: Frame, offset: int) -> None:
        key = frame.key.value if frame.key else ""
        self._complain(offset, f"the key `{key}` has no value")
        frame.add(Node("missing", offset, offset), self._keep)

    def _since(self, token: Token) -> str:
        line = self._places.line(token.start)
        return f", the second on line {line}" if line != self._places.line(self._previous.start) else ""

    def _object_goes_on(self, comma: Token) -> bool:
        """Whether after this comma, outside of everything, comes a key, and an object has just been closed."""
        if self._outside.last is None or self._outside.last.node.kind != "object":
            return False
        ahead = Lexer(self._text, lambda *_, **__: None)
        ahead.position = comma.end
        token = ahead.next()
        return token.kind == "string" and ahead.colon_follows(token)

    def _stray_quote(self, frame: Frame, token: Token) -> bool:
        """Whether the text that ended just before `token` holds a quote, or was never closed; then it is mended."""
        from workbench.model.near_json import end_of_line_text  # see `tokens`

        text, before, child = self._text, self._previous, frame.last
        if not before.quoted or before.end != token.start or child is None or token.kind in ("{", "["):
            return False
        self._notes.forget(token.start)
        if before.value.rstrip().endswith(","):
            comma = text.rindex(",", before.start, before.end)
            self._complain(before.start, "this text is never closed", 'A " is missing before the comma')
            child.node.end, child.node.scalar = comma, before.value.rstrip()[:-1]
            self._lexer.position = comma
            return True
        end = end_of_line_text(text, token.start)
        self._complain(before.end - 1, "a quote inside text", 'Write \\"', certain=True)
        child.node.end, child.node.scalar = end, text[before.start + 1 : end - 1]
        self._lexer.position = end
        return True


def _container(token: Token) -> Node:
    return Node("object" if token.kind == "{" else "array", token.start, token.end)
