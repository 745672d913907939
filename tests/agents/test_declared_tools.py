"""Tools read from an agent's sources, without importing them."""

from pathlib import Path

import pytest

from workbench.agents.declared_tools import DeclaredTools, declared_tools, instruction_place, tool_place
from workbench.agents.discovery import agent_at

TOOL = "def find(order_id: str, tool_context: ToolContext, exact: bool = False) -> dict: ...\n"


def _declared(folder: Path, **files: str) -> DeclaredTools:
    for name, source in files.items():
        file = folder / f"{name.replace('__', '/') if name != '__init__' else name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("raise SystemExit('this must not run')\n" + source)
    agent, _ = agent_at(folder)
    assert agent is not None
    return declared_tools(agent)


def test_functions_of_the_same_module_are_tools(tmp_path: Path) -> None:
    found = _declared(tmp_path, agent=TOOL + "root_agent = LlmAgent(name='a', model='gemini-2.5-flash', tools=[find])")
    assert found.complete
    assert found.models == {"gemini-2.5-flash"}
    assert found.tools["find"].arguments == ("order_id", "exact")
    assert found.tools["find"].required == {"order_id"}


@pytest.mark.parametrize(
    "model",
    [
        "Gemini(model='gemini-2.5-flash')",
        "LiteLlm('gemini-2.5-flash')",
        "MODEL",
        "LiteLlm(model=MODEL)",
        "llms.Gemini(model=HERE)",
    ],
)
def test_model_is_found_in_adks_classes_and_in_constants_of_the_project(tmp_path: Path, model: str) -> None:
    source = f"from .config import MODEL\nHERE = 'gemini-2.5-flash'\nroot_agent = LlmAgent(name='a', model={model})"
    found = _declared(tmp_path, agent=source, config="MODEL = 'gemini-2.5-flash'")
    assert found.models == {"gemini-2.5-flash"}


def test_model_name_given_to_an_unknown_class_is_ignored(tmp_path: Path) -> None:
    source = "root_agent = LlmAgent(name='a', model=ScriptedModel(model='gemini-2.5-flash'))"
    assert _declared(tmp_path, agent=source).models == set()


def test_models_of_an_agent_in_yaml_are_found(tmp_path: Path) -> None:
    (tmp_path / "root_agent.yaml").write_text(
        "name: a\nmodel: gemini-2.5-flash  # fast\nsub_agents: [{config_path: b.yaml}]"
    )
    (tmp_path / "b.yaml").write_text("name: b\nmodel: 'gemini-2.5-pro'\n")
    assert _declared(tmp_path).models == {"gemini-2.5-flash", "gemini-2.5-pro"}


def test_functions_of_a_neighbouring_module_are_tools(tmp_path: Path) -> None:
    source = "from .shop import find\nfrom . import desk\nroot_agent = Agent(name='a', tools=[find, desk.send])"
    found = _declared(tmp_path, agent=source, shop=TOOL, desk="def send(to): ...")
    assert found.complete
    assert sorted(found.tools) == ["find", "send"]


def test_sub_agents_add_their_tools_and_the_transfer_tool(tmp_path: Path) -> None:
    source = "from .billing import billing\nroot_agent = LlmAgent(name='a', sub_agents=[billing])"
    found = _declared(tmp_path, agent=source, billing=TOOL + "billing = LlmAgent(name='b', tools=[find])")
    assert found.complete
    assert sorted(found.tools) == ["find", "transfer_to_agent"]


@pytest.mark.parametrize(
    "tools", ["[find, McpToolset()]", "[find, *more]", "make_tools()", "[find, elsewhere]", "[AgentTool(agent=x)]"]
)
def test_unknown_tools_make_the_list_incomplete(tmp_path: Path, tools: str) -> None:
    found = _declared(tmp_path, agent=TOOL + f"root_agent = LlmAgent(name='a', tools={tools})")
    assert not found.complete


def test_tool_with_keyword_arguments_accepts_anything(tmp_path: Path) -> None:
    found = _declared(tmp_path, agent="def find(**words): ...\nroot_agent = LlmAgent(name='a', tools=[find])")
    assert found.tools["find"].open


def test_agent_reexported_by_its_package_is_read(tmp_path: Path) -> None:
    found = _declared(
        tmp_path, __init__="from .desk import root_agent", desk=TOOL + "root_agent = LlmAgent(name='a', tools=[find])"
    )
    assert sorted(found.tools) == ["find"]


def test_agent_without_a_framework_declares_nothing(tmp_path: Path) -> None:
    found = _declared(tmp_path, agent="def root_agent(message, session): return 'hi'")
    assert (found.tools, found.complete) == ({}, False)


def test_unreadable_module_makes_the_list_incomplete(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("root_agent = LlmAgent(tools=[find]\n")
    agent, _ = agent_at(tmp_path)
    assert agent is not None
    assert not declared_tools(agent).complete


def test_tools_of_a_module_that_imports_itself_are_found(tmp_path: Path) -> None:
    source = "from .agent import other\n" + TOOL + "root_agent = LlmAgent(tools=[find], sub_agents=[other])"
    assert "find" in _declared(tmp_path, agent=source).tools


def test_function_and_instruction_are_found_where_they_are_defined(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    _declared(
        folder,
        agent="from .tools import find\nfrom .prompts import PROMPT\n"
        "root_agent = LlmAgent(name='a', instruction=PROMPT, tools=[find])\n",
        tools="\n" + TOOL,
        prompts="X = 1\nPROMPT = 'Be kind.'\n",
    )
    agent, _ = agent_at(folder)
    assert agent is not None
    assert tool_place(agent, "find") == (folder / "tools.py", 3)
    assert tool_place(agent, "other") is None
    assert instruction_place(agent) == (folder / "prompts.py", 3)


def test_instruction_of_a_named_sub_agent_comes_first(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    source = "from google.adk import Agent\n\ninner = Agent(name='inner', instruction='Look up.')\n"
    (folder / "agent.py").write_text(
        f"{source}root_agent = Agent(name='desk', instruction='Be kind.', sub_agents=[inner])\n"
    )
    agent, _ = agent_at(folder)
    assert agent is not None
    assert instruction_place(agent, "desk") == (folder / "agent.py", 4)
    assert instruction_place(agent, "inner") == instruction_place(agent, "gone") == (folder / "agent.py", 3)


def test_tool_of_a_plain_python_agent_is_located_by_its_name(tmp_path: Path) -> None:
    _declared(tmp_path, agent='def root_agent(message, session):\n    return session.tool("find", {}, len)\n')
    agent, _ = agent_at(tmp_path)
    assert agent is not None
    assert tool_place(agent, "find") == (tmp_path / "agent.py", 3)
    assert instruction_place(agent) is None
