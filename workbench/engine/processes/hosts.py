"""The agents of one run: each has a host as long as it has cases that are not over."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from workbench.engine.places.place import Place
from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import Plan, PlanEntry
from workbench.engine.plan.source import AgentSource
from workbench.engine.processes.agent_host import AgentHost
from workbench.engine.processes.children import Children
from workbench.events import Noticed


class Hosts:
    """For the executions `todo` of the plan. The agents run at `place`, by default on this machine; `tell` takes what
    hosts have to say."""

    def __init__(
        self,
        plan: Plan,
        todo: Sequence[PlanEntry],
        children: Children,
        options: RunOptions,
        tell: Callable[[Noticed], None],
        place: Place | None = None,
    ) -> None:
        self._left = Counter(entry.ref.agent for entry in todo)
        """How many cases of an agent are not over yet."""
        self._startable = [entry for entry in todo if entry.blocked is None and isinstance(entry.source, AgentSource)]
        (place or children.local).open(options.concurrency)
        agents = plan.agents
        of_agent = Counter(entry.ref.agent for entry in self._startable)
        cases = Counter(agents[entry.ref.agent].interpreter.path for entry in self._startable)
        self._hosts = {
            name: AgentHost(
                setting,
                children,
                options,
                tell,
                place,
                cases=of_agent[name],
                alike=cases[setting.interpreter.path],
            )
            for name, setting in agents.items()
            if of_agent[name]
        }

    def of(self, agent: str) -> AgentHost:
        """Of an agent that has a case which can start."""
        return self._hosts[agent]

    def begin_first(self) -> None:
        """Lets the agent of the first case be imported already: that takes the longest."""
        if self._startable:
            self._hosts[self._startable[0].ref.agent].begin()

    def drop(self, agent: str) -> None:
        """One of its cases is not needed any more."""
        self._left[agent] -= 1

    async def case_over(self, agent: str) -> None:
        """One of its cases is over. An agent whose cases all are lets go of its memory while others run."""
        self._left[agent] -= 1
        if self._left[agent] == 0 and agent in self._hosts:
            await self._hosts[agent].close()

    async def close(self) -> None:
        """Ends all that is left of them."""
        await asyncio.gather(*(host.close() for host in self._hosts.values()))
