"""The frequency of garbage collection in an agent's process."""

from tests.worker.conftest import MakeAgent, needs_fork


@needs_fork
def test_garbage_collection_threshold_is_raised_before_the_import(make_agent: MakeAgent) -> None:
    agent = make_agent(
        "import gc\nAT_IMPORT = gc.get_threshold()[0]\n"
        "def root_agent(m, s):\n    return f'{AT_IMPORT} {gc.get_threshold()[0]}'"
    )
    assert agent.run("hi").answers == ["10000 10000"]


@needs_fork
def test_garbage_collection_threshold_set_by_an_agent_stays(make_agent: MakeAgent) -> None:
    agent = make_agent("import gc\ngc.set_threshold(123)\ndef root_agent(m, s):\n    return str(gc.get_threshold()[0])")
    assert agent.run("hi").answers == ["123"]
