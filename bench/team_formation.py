"""Finding the one right agent among 1,500: `python -m bench.team_formation [--json] [--small]`.

    metatool 199, livemcp 70, registry 1,231 without duplicates of those ──> 1,500 agents
    metatool questions (the half that nothing was tuned on) ──┬── flat index of all ────> top 1, top 10
                                                              └── a mesh, no hub ───────> top 1, top 10, ratio

The paper of the original IoA reports a figure for 1,500 agents too; its questions are others and not public, so
nothing here compares with it. Askers are as in bench.search: fresh nodes with an empty directory.
"""

from collections.abc import Iterator, Sequence

from bench import _corpus
from bench._corpus import Entry
from bench._flat import Flat, asked, recall
from bench._measure import arguments, report, say
from ioa_p2p.mind.match import card_words
from ioa_p2p.mind.meaning import load
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.words import words

AGENTS = 1_500
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
    wanted = arguments("Finding the one right agent among 1,500, with and without a hub.")
    registry, meaning = _corpus.registry(), load()
    if registry is None:
        raise SystemExit(_corpus.registry_hint())
    if meaning is None:
        raise SystemExit("the extra `semantic` is not installed")
    agents = population([*_corpus.metatool().entries, *_corpus.livemcp().entries], registry.entries)
    queries = [query for query in _corpus.metatool().queries if not query.tunes]
    say(f"{len(agents)} agents, {len(queries)} questions")
    encoded = asked(meaning, [query.text for query in queries])
    index = Flat(agents, meaning)
    index.check(meaning, [query.text for query in queries[:5]])
    flat = index.everything()
    found = [flat.best(question, 10) for question in encoded]
    figures = {"metatool_top1": recall(found, queries, 1), "metatool_top10": recall(found, queries, 10)}
    report(
        figures,
        {f"{name} >= {bar}": figures[name] >= bar for name, bar in BARS.items() if name in figures},
        runs=1,
        as_json=wanted.json,
    )


if __name__ == "__main__":
    main()
