"""How often Python looks for garbage in an agent's process."""

from tests.agents.worker.conftest import MakeAgent, needs_fork


@needs_fork
def test_it_looks_rarely_from_before_the_import_on(make_agent: MakeAgent) -> None:
    agent = make_agent(
        "import gc\nAT_IMPORT = gc.get_threshold()[0]\n"
        "def root_agent(m, s):\n    return f'{AT_IMPORT} {gc.get_threshold()[0]}'"
    )
    assert agent.run("hi").answers == ["10000 10000"]


@needs_fork
def test_the_limit_that_an_agent_sets_holds(make_agent: MakeAgent) -> None:
    agent = make_agent("import gc\ngc.set_threshold(123)\ndef root_agent(m, s):\n    return str(gc.get_threshold()[0])")
    assert agent.run("hi").answers == ["123"]
