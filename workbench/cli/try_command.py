"""The command `try`: variants of the project on the same cases, and whether one of them is better."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, TypeAlias

import click

from workbench.cli import common_options as common
from workbench.cli.exit_codes import FAILED, INTERRUPTED, PASSED, UNDECIDED
from workbench.cli.refusal import Refused
from workbench.cli.running_options import (
    JUDGING_OPTIONS,
    PLACE_OPTIONS,
    WRITING_OPTIONS,
    Outputs,
    RunningCommand,
    running_options,
    take_fields,
    take_running_options,
)
from workbench.cli.streams import has_failed, write_file, write_line
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.files.settings import Settings
    from workbench.project.targets import Targets
    from workbench.project.variants.lines import Row
    from workbench.project.variants.report import TryReport, VariantResult
    from workbench.project.variants.trial import Trial
    from workbench.project.variants.variant import Wanted

_Pairs: TypeAlias = tuple[tuple[str, str], ...]
_LISTED = 10
"""Maximum number of changed cases listed for each variant."""
_DESCRIPTION = """Compare variants of the project on the same cases. Says which are better or worse by more than chance.

\b
TARGET  a folder, an evalset file, FILE:case_1,case_2 or an evalset ID  [default: this folder]

Without options, the working tree is compared with HEAD. Cases, criteria, .env and interpreter are those of the working
tree in all variants. Each variant runs in a copy, and nothing in the project or in .git is changed.

\b
Exit codes
    0  the variants were compared
    1  with --gate: a variant is worse
    2  the command line is wrong, or there is nothing to compare; nothing ran
    3  a variant has no judged case
  130  interrupted; the results so far are shown
"""


class _TryCommand(RunningCommand):
    """The command with its groups of options."""

    groups: ClassVar[Mapping[str, str]] = {
        "Variants": "--against --swap --set --model --variant --grid",
        "What runs": "--agent --case -k --runs --max-cost --initial-session-file",
        "How it is judged": f"--gate {JUDGING_OPTIONS}",
        "What is written": f"--json --markdown --junit {WRITING_OPTIONS}",
        "Where it runs": PLACE_OPTIONS,
        "Recordings": "--frozen --on-miss",
        "Help": "--help",
    }


def _pairs(form: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], _Pairs]:
    """Return a callback that splits values of an option at their first `=`. `form` names the two parts in errors.

    The errors do not show the values, because they may be secrets.
    """

    def split(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> _Pairs:
        parts = [word.partition("=") for word in words]
        if not all(name and sign for name, sign, _ in parts):
            raise Refused(f"{parameter.opts[0]} takes {form}")
        return tuple((name, value) for name, _, value in parts)

    return split


def _money(context: click.Context, parameter: click.Parameter, amount: float | None) -> float | None:
    if amount is not None and not 0 < amount < float("inf"):
        raise Refused(f"--max-cost must be an amount above 0, not {amount:g}")
    return amount


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request(Outputs):
    """The request of one command line."""

    targets: "Targets"
    options: RunOptions
    wanted: "Wanted"
    markdown: Path | None
    max_cost: float | None
    gate: bool


@common.command("try", _DESCRIPTION, "Compare variants of the project on the same cases.", _TryCommand)
@click.argument("words", metavar="[TARGET]...", nargs=-1)
@click.option(
    "--against",
    metavar="REF",
    multiple=True,
    help="Git revision to compare with. Can be repeated: further ones are variants.  [default: HEAD]",
)
@click.option(
    "--swap",
    "swaps",
    metavar="FILE=OTHER",
    multiple=True,
    callback=_pairs("FILE=OTHER"),
    help="Variant in which FILE has the content of OTHER. Can be repeated.",
)
@click.option(
    "--set",
    "values",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pairs("NAME=VALUE"),
    help="Variant in which the agents have this variable. Can be repeated.",
)
@click.option(
    "--model", "models", metavar="NAME", multiple=True, help="Variant with this model in ADK agents. Can be repeated."
)
@click.option(
    "--variant",
    "folders",
    metavar="NAME=DIR",
    multiple=True,
    callback=_pairs("NAME=DIR"),
    help="Variant with the files of another folder: a project, or an agent. Can be repeated.",
)
@click.option("--grid", is_flag=True, help="Try every combination of --swap, --set and --model.")
@click.option("--runs", type=int, default=3, show_default=True, metavar="N", help="Run each case N times per variant.")
@click.option(
    "--max-cost", type=float, metavar="AMOUNT", callback=_money, help="Stop when the comparison has cost about AMOUNT."
)
@click.option("--gate", is_flag=True, help="Exit with 1 if a variant is clearly worse.")
@click.option(
    "--markdown",
    type=common.FILE,
    metavar="FILE",
    callback=common.checked_file("--markdown"),
    help="Write the results to FILE as Markdown, for a comment.",
)
@running_options
def try_command(**values: Any) -> int:
    """Compare the variants that the command line names, and return the exit code."""
    from workbench.project.targets import Targets
    from workbench.project.variants.variant import Wanted

    take_running_options(values)
    values.pop("fresh")  # A try is never resumed.
    values["words"] = values["words"] or (".",)
    here = Path.cwd()
    options = take_fields(RunOptions, values)
    targets = take_fields(Targets, values, folder=here)
    revisions = values.pop("against")
    values["against"] = next(iter(revisions), None)
    values["revisions"] = revisions[1:]
    wanted = take_fields(Wanted, values, here=here)
    request = _Request(targets=targets, options=options, wanted=wanted, **values)
    import asyncio  # Slow to import, and `--help` reads every command.

    targets.refuse_unknown()
    return asyncio.run(_try(request))


async def _try(request: _Request) -> int:
    """Make the copies, run the variants, write the results, and return the exit code."""
    import asyncio

    from workbench.cli import following
    from workbench.project.project import Project
    from workbench.project.variants.report import report
    from workbench.project.variants.trial import open_trial

    settings = following.user_settings()
    if request.max_cost is not None and not settings.prices:
        hint = "Add [prices] to the settings (see `agent-workbench --help`)"
        raise UsageFaultError("--max-cost needs prices", hint)
    targets = request.targets
    workspace = targets.open()
    plan = targets.plan(request.options, workspace)
    results = sys.stderr if request.json == "-" else sys.stdout
    async with Project(state_dir=targets.state_dir, settings=settings, keep_warm=False) as project:
        project.load_touched(workspace)
        read_before = [file for touched in project.touched().values() for file in touched.files]
        trial = await asyncio.to_thread(open_trial, plan, request.wanted, read_before)
        try:
            if not request.quiet:
                for line in _announcement(trial, project.state_dir(plan.root), settings):
                    write_line(sys.stderr, line)
            say = following.ignore_line if request.quiet else following.say_line
            await project.connect(trial.plan, say, following.ask_if_typed(request.options.place))
            progress = following.progress_of(request, trial.store, results, names_cases=False)
            run = trial.run(project, prices=settings.prices, max_cost=request.max_cost)
            with following.Interruption(run, progress.message) as interruption:
                with progress, following.with_machines(project, trial.store, trial.plan, progress):
                    await following.execute_run(run, progress)
                found = report(trial.layout, trial.store.current_records(), trial.costs)
                if request.detailed:
                    following.write_details(trial.store, results)
                stopped = "interrupted" if interruption.count else trial.stopped
                written = _write(request, found, stopped, settings, results)
                if request.junit is not None:
                    pieces = lambda: following.exported("junit", trial.store, settings.prices)  # noqa: E731
                    written = write_file("--junit", request.junit, pieces) and written
        finally:
            await asyncio.to_thread(trial.close)
    if interruption.count:
        return INTERRUPTED
    if not (found.could_run and written) or has_failed():
        return UNDECIDED
    is_worse = any(one.comparison is not None and one.comparison.result == "worse" for one in found.variants)
    return FAILED if request.gate and is_worse else PASSED


def _announcement(trial: "Trial", state: Path, settings: "Settings") -> Iterator[str]:
    """Yield lines about the planned runs and their estimated cost."""
    from workbench.project.variants.report import title_words

    layout = trial.layout
    count = math.prod(layout.size)
    cost = trial.estimate(state, settings.prices).cost_words
    yield f"{title_words(*layout.size)} ({count:,} in all){f', {cost}' if cost else ''}"
    width = max(map(len, layout.names))
    for name, source in zip(layout.names, trial.sources, strict=True):
        yield f"  {one_line(name):{width}}  {one_line(source)}"
    yield "  In all of them: cases, criteria, .env and interpreter of the working tree"


def _write(request: _Request, found: "TryReport", stopped: str, settings: "Settings", results: TextIO) -> bool:
    """Write the results, files first. Return False if one could not be written."""
    from workbench.cli.following import width_of
    from workbench.project.variants.export import as_json, as_markdown

    done = True
    text = as_json(found, stopped)
    if request.json not in (None, "-"):
        done = write_file("--json", Path(str(request.json)), lambda: (f"{text}\n".encode("ascii"),))
    if request.markdown is not None:
        markdown = as_markdown(found, settings.prices, _stopped_text(found, stopped)).encode("utf-8", "replace")
        done = write_file("--markdown", request.markdown, lambda: (markdown,)) and done
    for line in _lines(found, stopped, settings, width_of(results)):
        write_line(results, line)
    if request.json == "-":
        write_line(sys.stdout, text)
    return done


def _lines(found: "TryReport", stopped: str, settings: "Settings", width: int) -> Iterator[str]:
    from workbench.project.variants.lines import table_rows
    from workbench.project.variants.report import conclusion, left_out_words, total_cost

    cost = total_cost(found, settings.prices)
    yield ""
    if text := _stopped_text(found, stopped):
        yield text
    yield from map(_plain, table_rows(found, settings.prices, width))
    if cost:
        yield f"{cost} in all"
    for variant in found.variants:
        if words := left_out_words(variant):
            yield f"Left out in {one_line(variant.name)}: {words}"
    for variant in found.variants[1:]:
        yield ""
        yield from map(_plain, _cases(variant, found.against, width))
        yield one_line(conclusion(variant, found.against), limit=1000)


def _stopped_text(found: "TryReport", stopped: str) -> str:
    """Return how much of the try ran, and why not all of it, or "" if nothing stopped it."""
    if not stopped:
        return ""
    ended = sum(variant.ended for variant in found.variants)
    planned = len(found.variants) * found.cases * found.runs
    why = {"cost": "--max-cost was reached", "judge calls": "--max-judge-calls was reached"}
    why["unknown cost"] = "the cost of a run is not known: [prices] lacks its model, or it reports no usage"
    return f"Stopped after {ended:,} of {counted(planned, 'run')}: {why.get(stopped, stopped)}"


def _cases(variant: "VariantResult", against: str, width: int) -> "Iterator[Row]":
    from workbench.project.variants.lines import case_rows, counts_row

    yield counts_row(variant, against)
    yield from case_rows(variant, variant.changed[:_LISTED], width)
    if len(variant.changed) > _LISTED:
        yield [(f"… {len(variant.changed) - _LISTED} more", "")]


def _plain(row: "Row") -> str:
    """Return a row without colours."""
    return "".join(text for text, _ in row).rstrip()
