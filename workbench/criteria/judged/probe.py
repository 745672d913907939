"""Probe of a judge: items with known answers for each of our questions.

    python -m workbench.criteria.judged.probe --model gemini-2.5-flash [--env-file agent/.env] [--kind claims]

The items are few and simple. Do not use a judge that misses several. A judge that answers all of them correctly may
still be wrong about your cases. Each item is sent once.
"""

import argparse
import asyncio
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from workbench.criteria.judged.claim_questions import claims_question, read_claims, read_sentences, sentences_question
from workbench.criteria.judged.final_response_match import answer_question
from workbench.criteria.judged.rubric_question import Rubric, read_votes, rubrics_question
from workbench.criteria.judged.user_simulator import message_question
from workbench.criteria.judged.voting import ask_once, read_verdict
from workbench.files.schema import STOP_SIGNAL
from workbench.judges.base import Judge, JudgeOptions, NotAvailableError, Question
from workbench.judges.judge_pool import JudgeEnvironment, JudgePool, RunLimits
from workbench.text.safe_text import one_line

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of one item.

    `right` is the correct answer and `got` the judge's answer. If `got` is None, `unread` says why.
    """

    kind: str
    id: str
    about: str
    right: Any
    got: Any
    unread: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the judge is right."""
        return bool(self.got == self.right)


@dataclass(frozen=True, slots=True)
class _Kind:
    question: Callable[[Item], Question]
    read: Callable[[str, Item], Any]


def items(kind: str) -> list[Item]:
    """Return the items for one kind of question, with `id`, `about` and `right`."""
    text = files("workbench.criteria").joinpath("probes", f"{kind}.json").read_text(encoding="utf-8")
    found: list[Item] = json.loads(text)
    return found


async def run_probes(judge: Judge, kinds: Sequence[str] = ()) -> list[ProbeResult]:
    """Send all items of these kinds at once, and return the results. Without kinds, send all items."""
    sent = [(kind, item) for kind in kinds or KINDS for item in items(kind)]
    return list(await asyncio.gather(*(_ask(judge, kind, item) for kind, item in sent)))


async def _ask(judge: Judge, kind: str, item: Item) -> ProbeResult:
    rules = KINDS[kind]
    sampled = await ask_once(judge, rules.question(item), lambda text: rules.read(text, item))
    got = sampled.answers[0] if sampled.answers else None
    return ProbeResult(kind, item["id"], item["about"], item["right"], got, sampled.unread)


def _rubrics(item: Item) -> Question:
    usual: dict[str, Any] = {"instructions": "", "tools": {}, "grounding": [], "conversation": None}
    return rubrics_question({**usual, **{key: item[key] for key in item if key not in ("id", "about", "right")}})


def _claims(item: Item) -> Question:
    context = [{**piece, "event": None, "call_id": None} for piece in item["context"]]
    return claims_question(" ".join(item["sentences"]), item["sentences"], context)


def _message(item: Item) -> Question:
    scenario = {
        "conversation_plan": item["plan"],
        "starting_prompt": item["starting_prompt"],
        "user_persona": item.get("persona"),
    }
    history = [{"role": role, "text": text} for role, text in item["history"]]
    return message_question(scenario, history, item["message"], STOP_SIGNAL)


def _valid(text: str, item: Item) -> str:
    return "valid" if read_verdict(text).valid else "invalid"


def _votes(text: str, item: Item) -> dict[str, str]:
    known = [Rubric(rubric["id"], rubric["text"], "config") for rubric in item["rubrics"]]
    return {each: vote.verdict for each, vote in read_votes(text, known).items()}


KINDS: dict[str, _Kind] = {
    "final_response_match": _Kind(
        lambda item: answer_question(item["user"], item["response"], item["reference"]), _valid
    ),
    "rubrics": _Kind(_rubrics, _votes),
    "sentences": _Kind(lambda item: sentences_question(item["text"]), lambda text, item: read_sentences(text)),
    "claims": _Kind(_claims, lambda text, item: [claim.label for claim in read_claims(text, item["sentences"])]),
    "user_message": _Kind(_message, _valid),
}


def results_text(results: Sequence[ProbeResult]) -> str:
    """Return the results as text: the misses, then one line per kind."""
    lines = []
    by_kind: dict[str, list[ProbeResult]] = defaultdict(list)
    for result in results:
        by_kind[result.kind].append(result)
        if not result.agrees:
            got = one_line(result.unread or json.dumps(result.got, ensure_ascii=False), limit=200)
            right = json.dumps(result.right, ensure_ascii=False)
            lines.append(f"{result.kind} {result.id} ({result.about}): should be {right}, got {got}")
    for kind, own in by_kind.items():
        lines.append(f"{kind}: {sum(result.agrees for result in own)} of {len(own)} right")
    return "\n".join(lines) + "\n"


async def _main(model: str, env_file: Path | None, kinds: Sequence[str]) -> int:
    from_file = {name: value for name, value in dotenv_values(env_file).items() if value} if env_file else {}
    here = str(Path.cwd())
    environment = JudgeEnvironment("probe", {**from_file, **os.environ}, sys.executable, here, here, here)
    pool = JudgePool(lambda waiting, seconds, reason: None)
    pool.begin_run(RunLimits(use_cache=False))
    try:
        judge = pool.bench(environment, 1, True).judge(JudgeOptions(model))
        results = await run_probes(judge, kinds)
    except NotAvailableError as error:
        sys.stderr.write(one_line(f"{error}: {error.hint}" if error.hint else str(error)) + "\n")
        return 2
    finally:
        await pool.close()
    note = f" ({judge.identity.note})" if judge.identity.note else ""
    sys.stdout.write(one_line(f"{judge.identity.model}{note}") + "\n" + results_text(results))
    return 0 if all(result.agrees for result in results) else 1


def main() -> int:
    """Run the probe. Return 0 if all answers are right, 1 if some are not, or 2 if the judge cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m workbench.criteria.judged.probe",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, help="the judge, as in `judge_model`")
    parser.add_argument("--env-file", type=Path, help="file with the judge's key")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind of question; repeatable")
    arguments = parser.parse_args()
    return asyncio.run(_main(arguments.model, arguments.env_file, arguments.kind or ()))


if __name__ == "__main__":
    sys.exit(main())
