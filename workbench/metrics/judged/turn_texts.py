"""The texts of a turn that judges read."""

from workbench.model.invocation import Invocation, content_text, intermediate_texts


def user_text(turn: Invocation) -> str:
    """What the user said."""
    return content_text(turn.get("user_content"))


def answer_text(turn: Invocation, *, with_intermediate: bool = False) -> str:
    """The final answer; with what was said on the way before it, if so wished, each on its own line."""
    final = content_text(turn.get("final_response"))
    if not with_intermediate:
        return final
    said = [text for _, text in intermediate_texts(turn)]
    return "\n".join([*said, final] if final else said)
