"""Text of others on its way into an HTML page: it is shown, and nothing else happens."""

from html import escape

from workbench.text import one_line


def html_line(text: str) -> str:
    """Any text on one line, safe for a terminal and for a page."""
    return html_body(one_line(text, limit=1000))


def html_body(text: str) -> str:
    """Text that is safe for a terminal already, made safe for a page."""
    return escape(text, quote=True)


def class_name(style: str) -> str:
    """The name of a style as the value of a class attribute."""
    return escape(" ".join(style.replace(".", " ").split()), quote=True)
