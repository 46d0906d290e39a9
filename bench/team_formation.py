"""Finding the one right agent among 1,500: `python -m bench.team_formation [--json] [--small]`.

    metatool 199, livemcp 70, registry 1,231 without duplicates of those ──> 1,500 agents
    metatool questions (the half that nothing was tuned on) ──┬── flat index of all ────> top 1, top 10
                                                              └── a mesh, no hub ───────> top 1, top 10, ratio

The paper of the original IoA reports a figure for 1,500 agents too; its questions are others and not public, so
nothing here compares with it. Askers are as in bench.search: fresh nodes with an empty directory.
"""

import statistics
from collections.abc import Iterator, Sequence

from bench import _corpus
from bench._corpus import Entry, Query
from bench._flat import Flat, asked, recall
from bench._measure import Figures, arguments, report, say
from bench._mesh import FullMesh
from bench.search import ASKERS, Bench, reported
from bench.search import recall as reached
from ioa_p2p.mind.meaning import Meaning, load
from ioa_p2p.mind.texts import card_words
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.words import words

AGENTS, NODES = 1_500, 500
QUERIES = 987  # all of metatool's that nothing was tuned on
TOPS = (1, 10)
SEED = 1
SAME_WORDS = 0.5  # of two descriptions' words together: then they tell of one thing
GENERIC = frozenset("mcp server tool api service ai agent plugin app model context protocol official".split())
BARS = {"top1_ratio_flat": 0.95, "top10_ratio_flat": 0.95, "metatool_top1": 0.45, "metatool_top10": 0.72}


def population(gold: Sequence[Entry], others: Sequence[Entry]) -> list[Entry]:
    """`AGENTS` entries: all the gold ones, and others that duplicate none of them, chosen by hash."""
    rest = sorted(without_duplicates(gold, others), key=lambda entry: blake(entry.id.encode()))
    return list(_corpus.unique_names([*gold, *rest[: AGENTS - len(gold)]]))


def without_duplicates(gold: Sequence[Entry], others: Sequence[Entry]) -> Iterator[Entry]:
    """Those of `others` that are not a gold one under another roof: a question for the one is a question for the other.

    Two are duplicates when their names say the same beside generic words ("Excel MCP Server" and "excel-tool"), or
    when they share half of their words. No encoder decides, or the index would choose its own rivals.
    """
    names = {telling_name(entry) for entry in gold} - {frozenset[str]()}
    texts = [frozenset(card_words(entry.card)) for entry in gold]
    for entry in others:
        text = frozenset(card_words(entry.card))
        if telling_name(entry) not in names and not any(alike(text, each) for each in texts):
            yield entry


def telling_name(entry: Entry) -> frozenset[str]:
    return frozenset(words(entry.card.name.replace("-", " "))) - GENERIC


def alike(text: frozenset[str], other: frozenset[str]) -> bool:
    return len(text & other) >= SAME_WORDS * len(text | other)


def main() -> None:
    args = arguments("Finding the one right agent among 1,500, with and without a hub.")
    registry, meaning = _corpus.registry(), load()
    if registry is None:
        raise SystemExit(_corpus.registry_hint())
    if meaning is None:
        raise SystemExit("the extra `semantic` is not installed")
    nodes, count = (60, 10) if args.small else (NODES, QUERIES)
    agents = population([*_corpus.metatool().entries, *_corpus.livemcp().entries], registry.entries)
    figures = measure(meaning, agents, nodes, count)
    bars = {f"{name} >= {bar}": figures[name] >= bar for name, bar in BARS.items()}
    report(figures, bars, runs=1, as_json=args.json)


def measure(meaning: Meaning, agents: Sequence[Entry], nodes: int, count: int) -> Figures:
    """metatool_*: without a hub. flat_*: the same questions to an index of everything."""
    queries = reported(_corpus.metatool().queries, count)
    say(f"{len(agents)} agents, {nodes} nodes, {len(queries)} questions")
    flat = _flat(meaning, agents, queries)
    bench = Bench(meaning, FullMesh(SEED, nodes, ASKERS, meaning), agents)
    bench.publish(agents)
    runs = bench.runs(queries)
    figures = {f"metatool_top{first}": reached(runs, first) for first in TOPS}
    figures |= {f"flat_top{first}": recall(flat, queries, first) for first in TOPS}
    ratios = {f"top{first}_ratio_flat": figures[f"metatool_top{first}"] / figures[f"flat_top{first}"] for first in TOPS}
    rpcs = statistics.median(run.cost.rpcs for run in runs)
    return {**ratios, **figures, "rpcs_median": rpcs, "agents": len(agents), "nodes": nodes, "questions": len(queries)}


def _flat(meaning: Meaning, agents: Sequence[Entry], queries: Sequence[Query]) -> list[list[str]]:
    index, texts = Flat(agents, meaning), [query.text for query in queries]
    index.check(meaning, texts[:5])
    everything = index.everything()
    return [everything.best(question, max(TOPS)) for question in asked(meaning, texts)]


if __name__ == "__main__":
    main()
