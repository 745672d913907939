"""Escaping of foreign text for an HTML page."""

from html import escape

from workbench.text.safe_text import one_line


def html_line(text: str) -> str:
    """Return any text on one line, safe for a terminal and for a page."""
    return html_body(one_line(text, limit=1000))


def html_body(text: str) -> str:
    """Escape text that is already safe for a terminal."""
    return escape(text, quote=True)


def class_name(style: str) -> str:
    """Return the name of a style as the value of a class attribute."""
    return escape(" ".join(style.replace(".", " ").split()), quote=True)
