"""How many calls of judges and simulated users are to come."""

from collections.abc import Iterator

from workbench.engine.plan.judge_calls import Span, criterion_calls, simulator_calls, total, turns_of_scenario
from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.preflight.looked import Looked, asking
from workbench.engine.plan.preflight.sight import Sight
from workbench.events import Noticed
from workbench.judge.base import JudgeIdentity
from workbench.simulation.config import read_simulator


def calls_to_come(sight: Sight, scale: float, options: RunOptions) -> Iterator[Noticed]:
    """Of a run with `scale` times as many cases as are in sight."""
    every = total(_calls(sight, item, all_votes=options.all_votes) for item in sight.played()).times(options.runs)
    low, high = round(every.low * scale), round(every.high * scale)
    if high == 0:
        return
    count = f"{low}" if low == high else f"{low} to {high}"
    calls = "judge call is" if low == high == 1 else "judge calls are"
    kept = ", fewer where answers are kept" if options.use_cache else ""
    message = f"about {count} {calls} to come{kept}"
    most = options.max_judge_calls
    if most is not None and low > most:
        message = f"{message}; --max-judge-calls {most} will cut them short"
        yield Noticed("warning", message, "Allow more, or run less", forecast=True)
    else:
        yield Noticed("info", message, forecast=True)


def _calls(sight: Sight, item: Looked, *, all_votes: bool) -> Span:
    """What will be asked in one execution of the case."""
    simulator = read_simulator(item.config.user_simulator_config)
    scenario = item.case.scenario is not None
    turns = turns_of_scenario(simulator) if scenario else Span(*[len(item.case.turns or ())] * 2)
    spans = [
        criterion_calls(criterion, sight.options(criterion).samples, turns, item.rubrics, all_votes=all_votes)
        for criterion in asking(item)
        # Rules are no call.
        if isinstance(who := sight.judge(item.agent, criterion), JudgeIdentity) and who.by != "rules"
    ]
    return total([*spans, simulator_calls(simulator) if sight.simulated(item) else Span()])
