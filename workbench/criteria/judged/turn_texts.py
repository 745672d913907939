"""Texts of a turn that judges read."""

from workbench.files.invocation import Invocation, content_text, intermediate_texts


def user_text(turn: Invocation) -> str:
    """Return the user's message."""
    return content_text(turn.get("user_content"))


def answer_text(turn: Invocation, *, with_intermediate: bool = False) -> str:
    """Return the final answer, optionally after the intermediate texts, each on its own line."""
    final = content_text(turn.get("final_response"))
    if not with_intermediate:
        return final
    texts = [text for _, text in intermediate_texts(turn)]
    return "\n".join([*texts, final] if final else texts)
