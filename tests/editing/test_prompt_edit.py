import ast
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.editing.responsible import NoPromptError, Prompt, find_prompt, replaced

AGENT = '''
"""A desk."""
from google.adk.agents import LlmAgent

STYLE = """\\
You answer in short sentences.
Never say "sure".
"""
helper = LlmAgent(name="helper", description="You help the desk with orders.", instruction=STYLE)
root_agent = LlmAgent(
    name="desk",  # first
    instruction=(
        "Print a label for the order {last?}. "  # the state
        'Take your time, and don\\'t hurry. '
        "Be kind."
    ),
    tools=[],
)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT, "utf-8")
    return tmp_path


def test_only_the_changed_part_of_the_literal_that_the_model_got_is_replaced(folder: Path) -> None:
    sent = (
        'Print a label for the order A-1. Take your time, and don\'t hurry. Be kind.\n\nYou are an agent named "desk".'
    )
    prompt = find_prompt(folder, "desk", sent)
    assert (prompt.file.name, prompt.line) == ("agent.py", 13)
    new = prompt.text.replace("Be kind", "Be quick")
    assert replaced(prompt, new).decode() == AGENT.replace('"Be kind."', '"Be quick."')
    both = prompt.text.replace("Take your time", "Print it now").replace("{last?}", "{last}")
    changed = replaced(prompt, both).decode()
    assert "# first" in changed
    assert '"Be kind."' in changed
    assert ast.literal_eval(changed.split("instruction=(")[1].split(")")[0].strip().replace("\n", "")) == both


def test_instruction_in_a_variable_of_the_module_is_found(folder: Path) -> None:
    prompt = find_prompt(folder, "helper", 'You answer in short sentences.\nNever say "sure".\n\nYou help the desk.')
    assert prompt.text.startswith("You answer")
    new = prompt.text.replace("short", "long")
    assert replaced(prompt, new).decode() == AGENT.replace("in short", "in long")


def test_text_file_is_replaced_as_a_whole(folder: Path) -> None:
    (folder / "prompt.md").write_text("\n# Desk\n\nHelp with {topic}.\n", "utf-8")
    prompt = find_prompt(folder, "other", "# Desk\n\nHelp with orders.\nMore.")
    assert replaced(prompt, "# Desk\n\nHelp.") == b"\n# Desk\n\nHelp.\n"


def test_missing_and_repeated_texts_are_refused(folder: Path) -> None:
    with pytest.raises(NoPromptError, match="was not found in"):
        find_prompt(folder, "desk", "Something else")
    (folder / "one.py").write_text('A = "Take good care of it."\n', "utf-8")
    (folder / "two.py").write_text('B = "Take good care of it."\n', "utf-8")
    with pytest.raises(NoPromptError, match=r"several places: one\.py:1, two\.py:1"):
        find_prompt(folder, "desk", "Take good care of it.")


def test_text_with_many_placeholders_is_searched_at_once(folder: Path) -> None:
    (folder / "words.py").write_text(f"A = {'{}, ' * 20 + 'end?'!r}\n", "utf-8")
    sent = 'You answer in short sentences.\nNever say "sure".\n\n' + "one, " * 200
    assert find_prompt(folder, "helper", sent).text.startswith("You answer")


LITERALS = ['"{}"', "'{}'", 'r"{}"', '"""{}"""', '"""\\\n{}"""', "'''{}'''", '("be" "{}" \'so\')', '(\n "{}"\n  "é"\n)']


@example('"""{}"""', '"""')
@given(st.sampled_from(LITERALS), st.text(st.sampled_from("ab é\\\"'\n{}\r"), max_size=12))
def test_any_text_is_written_so_that_python_reads_it_again(literal: str, text: str) -> None:
    content = f'"""é"""\nX = f(name="é", instruction={literal.format("to be kind")})  # é\n'.encode()
    node = next(node for node in ast.walk(ast.parse(content)) if isinstance(node, ast.keyword) and node.arg != "name")
    value = node.value
    assert isinstance(value, ast.Constant)
    assert value.end_lineno is not None
    assert value.end_col_offset is not None
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    span = starts[value.lineno - 1] + value.col_offset, starts[value.end_lineno - 1] + value.end_col_offset
    prompt = Prompt(Path("agent.py"), content, str(value.value), span, value.lineno)
    try:
        again = replaced(prompt, text)
    except NoPromptError:
        pytest.fail(f"{literal} {text!r}")
    found = next(node for node in ast.walk(ast.parse(again)) if isinstance(node, ast.keyword) and node.arg != "name")
    assert ast.literal_eval(found.value) == text
    assert again.endswith("  # é\n".encode())
