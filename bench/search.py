"""Search without a hub against an exact flat index: thousands of real descriptions in one simulated mesh.

    metatool, livemcp, mcp_registry ── published as agents ──> FullMesh of 500 nodes (bench/_mesh.py says what is real)
    queries of the half not tuned on ── node.finder, cold askers ──> recall, requests, bytes
                                    └── the same Ranker over all agents at once ──> flat recall

`loss_vs_flat_recall5`: 1 - recall@5 of the mesh / recall@5 of the flat index, metatool's queries over all agents.
`flat_top5_kept`: of the flat index's first five, stricter. `metatool_*` and `lexical_*` (no model): among its own 199,
published alone first. `*_set_recall5`: share of a task's agents among the first five. `placed_alike`: see _mesh.py.
Without the extra `semantic` only the lexical figures are measured.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import _corpus
from bench._corpus import Entry, Query
from bench._measure import Figures, arguments, percentile, report, say
from bench._mesh import Cost, FullMesh
from ioa_p2p.mind.lexicon import bag
from ioa_p2p.mind.meaning import Meaning, card_text, load
from ioa_p2p.mind.ranking import Question, Ranker
from ioa_p2p.mind.texts import card_words
from ioa_p2p.node import query as node_query
from ioa_p2p.node.answer import answer_of
from ioa_p2p.node.sense import CELLS_OF_AGENT, Aspect, aspect_at
from ioa_p2p.wire import limits

NODES, ASKERS, CURVE_QUERIES = 500, 8, 60
QUERIES = 987  # all of metatool's that nothing was tuned on
CURVE_RPCS = (60, 90, 120, 150)
FIRST = 5
AT_ONCE = 64  # texts encoded in one call
FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "search-loss.svg"


def main() -> None:
    args = arguments(__doc__ or "")
    nodes, queries = (60, 10) if args.small else (NODES, QUERIES)
    model = load()
    if model is None:
        say("without the extra `semantic` there is no meaning: the lexical figures alone are measured")
    figures = measure(model, nodes, queries, small=args.small)
    report(figures, bars(figures), runs=1, as_json=args.json)


def bars(figures: Figures) -> dict[str, bool]:
    wanted: dict[str, Callable[[float], bool]] = {
        "loss_vs_flat_recall5 <= 0.05": lambda value: value <= 0.05,
        "rpcs_median <= 150": lambda value: value <= 150,
        "bytes_median <= 524288": lambda value: value <= 524_288,
        "metatool_recall1 >= 0.52": lambda value: value >= 0.52,
        "metatool_recall5 >= 0.73": lambda value: value >= 0.73,
        "lexical_recall1 >= 0.38": lambda value: value >= 0.38,
        "lexical_recall5 >= 0.56": lambda value: value >= 0.56,
        "local_hits == 0": lambda value: value == 0,
    }
    known = {bar: met for bar, met in wanted.items() if bar.split()[0] in figures}
    return {bar: met(figures[bar.split()[0]]) for bar, met in known.items()}


def measure(model: Meaning | None, nodes: int, queries: int, *, small: bool) -> Figures:
    corpus = _corpus.metatool() if small else _corpus.everything()
    if not small and _corpus.registry() is None:
        say(_corpus.registry_hint())
    mesh = FullMesh(1, nodes, ASKERS, model)
    alike = mesh.placed_alike()
    bench = Bench(model, mesh, corpus.entries)
    own = [entry for entry in corpus.entries if entry.source == "metatool"]
    asked = reported(_corpus.metatool().queries, queries)
    bench.publish(own)
    figures = _recalls("lexical", bench.runs(asked, by_meaning=False))
    figures |= {"placed_alike": alike, "nodes": nodes}
    if model is None:
        return {**figures, "agents": len(own)}
    figures |= _recalls("metatool", bench.runs(asked))
    bench.publish([entry for entry in corpus.entries if entry.source != "metatool"])
    return {**figures, **_whole_mesh(bench, asked, small), "agents": len(corpus.entries)}


def _whole_mesh(bench: "Bench", asked: Sequence[Query], small: bool) -> Figures:
    """Among all agents: against the flat index, cold and warm; Chinese; sets."""
    cold = bench.runs(asked)
    flat = [bench.flat(query) for query in asked]
    found, best = recall(cold, FIRST), recall(flat, FIRST)
    kept = [len(set(run.names[:FIRST]) & set(known.names)) / FIRST for run, known in zip(cold, flat, strict=True)]
    warm = [run for query in asked[: len(asked) // 8] for run in (bench.run(query), bench.run(query, warm=True))][1::2]
    figures = {
        "loss_vs_flat_recall5": 1 - found / best if best else 0.0,
        "recall5": found,
        "flat_recall5": best,
        "flat_top5_kept": statistics.fmean(kept),
        **_costs("", cold),
        **_costs("warm_", warm),
        "local_hits": float(sum(run.local_hits for run in cold)),
    }
    if not small:
        figures |= _other_queries(bench)
        _curve(bench, asked[:CURVE_QUERIES], recall(flat[:CURVE_QUERIES], FIRST))
    return figures


def _other_queries(bench: "Bench") -> Figures:
    chinese = [query for query in _corpus.chinese() if not query.tunes]
    tasks = [query for query in _corpus.livemcp().queries if not query.tunes]
    pairs = reported(_corpus.two_tools().queries, 60)
    return {
        "zh_recall5": recall(bench.runs(chinese), FIRST),
        "livemcp_set_recall5": statistics.fmean(map(share, bench.runs(tasks))),
        "two_tools_set_recall5": statistics.fmean(map(share, bench.runs(pairs))),
    }


def _curve(bench: "Bench", asked: Sequence[Query], best: float) -> None:
    """Loss against requests, as the budget grows."""
    points: list[tuple[float, float]] = []
    for rpcs_max in CURVE_RPCS:
        runs = bench.runs(asked, rpcs_max=rpcs_max)
        points.append((statistics.median(run.cost.rpcs for run in runs), 1 - recall(runs, FIRST) / best))
        say(f"budget {rpcs_max}: {points[-1][0]:.0f} requests, loss {points[-1][1]:.3f}")
    draw(points)


# -- asking


@dataclass(frozen=True)
class Run:
    """relevant: names of the agents that answer it. names: of the hits, best first. together: the set for its needs."""

    relevant: frozenset[str]
    names: list[str]
    together: list[str]
    cost: Cost
    local_hits: int


class Bench:
    """entries: all agents there will be."""

    def __init__(self, model: Meaning | None, mesh: FullMesh, entries: Sequence[Entry]) -> None:
        self._model = model
        self._mesh = mesh
        self._entries = entries
        self._ranker = Ranker(model)
        say(f"encoding {len(entries)} descriptions")
        self._aspects = _aspects(model, [card_text(entry.card) for entry in entries], CELLS_OF_AGENT)
        self._bags = [bag(card_words(entry.card)) for entry in entries]
        self._numbers = {entry.id: number for number, entry in enumerate(entries)}
        self._asked: dict[str, Aspect | None] = {}

    def publish(self, entries: Sequence[Entry]) -> None:
        say(f"publishing {len(entries)} agents")
        self._mesh.place([(entry.card, self._aspects[self._numbers[entry.id]]) for entry in entries])

    def runs(self, asked: Sequence[Query], **how: Any) -> list[Run]:
        say(f"asking {len(asked)} queries {how or ''}")
        return [self.run(query, **how) for query in asked]

    def run(self, query: Query, *, by_meaning: bool = True, **how: Any) -> Run:
        """One search by an asker that has the query's turn, and the node's own answer to it."""
        aspect = self._aspect(query.text) if by_meaning else None
        asker = self._mesh.askers[len(query.id) % len(self._mesh.askers)]
        search, cost = self._mesh.search(asker, node_query.Query(query.text), aspect, **how)
        answer = answer_of(search, self._model)
        names = [placed.hit.card.name for placed in answer.placed]
        together = [hit.card.name for hit in answer.together]
        return Run(self._relevant(query), names, together, cost, search.local_hits)

    def flat(self, query: Query) -> Run:
        """The first five of the same ranker over all agents; costs nothing."""
        aspect = self._aspect(query.text)
        assert aspect is not None
        words = tuple(node_query.Query(query.text).words)
        scores = self._ranker.scores_of(Question(query.text, words, aspect.vector), self._bags, self._vectors())
        order = sorted(range(len(scores)), key=lambda number: -scores[number].total)
        names = [self._entries[number].card.name for number in order[:FIRST]]
        return Run(self._relevant(query), names, [], Cost(0, 0), 0)

    def _relevant(self, query: Query) -> frozenset[str]:
        return frozenset(self._entries[self._numbers[each]].card.name for each in query.relevant)

    def _aspect(self, text: str) -> Aspect | None:
        if text not in self._asked:
            self._asked[text] = _aspects(self._model, [text], limits.FIND_CELLS_MAX)[0]
        return self._asked[text]

    def _vectors(self) -> Any:
        import numpy as np

        return np.stack([aspect.vector for aspect in self._aspects if aspect is not None])


def _aspects(model: Meaning | None, texts: Sequence[str], cells: int) -> Sequence[Aspect | None]:
    if model is None:
        return [None] * len(texts)
    chunks = (texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE))
    vectors = [vector for chunk in chunks for vector in model.encode(chunk)]
    return [aspect_at(model, vector, cells) for vector in vectors]


def reported(queries: Sequence[Query], count: int) -> list[Query]:
    """Some of the half that nothing was tuned on, always the same."""
    rest = [query for query in queries if not query.tunes]
    return random.Random(1).sample(rest, min(count, len(rest)))


# -- figures


def recall(runs: Sequence[Run], first: int) -> float:
    """Share of queries with an agent that answers it among the first."""
    return statistics.fmean(bool(run.relevant & set(run.names[:first])) for run in runs)


def share(run: Run) -> float:
    """Of the agents that a task needs, among five: the set for its needs, or the first ones where there is one need."""
    return len(run.relevant & set((run.together or run.names)[:FIRST])) / len(run.relevant)


def _recalls(name: str, runs: Sequence[Run]) -> Figures:
    say(f"{name}: recall@1 {recall(runs, 1):.3f}, recall@5 {recall(runs, FIRST):.3f}")
    return {f"{name}_recall1": recall(runs, 1), f"{name}_recall5": recall(runs, FIRST), **_costs(f"{name}_", runs)}


def _costs(name: str, runs: Sequence[Run]) -> Figures:
    rpcs, size = [float(run.cost.rpcs) for run in runs], [float(run.cost.bytes) for run in runs]
    return {
        f"{name}rpcs_median": statistics.median(rpcs),
        f"{name}rpcs_p95": percentile(rpcs, 0.95),
        f"{name}bytes_median": statistics.median(size),
    }


def draw(points: Sequence[tuple[float, float]]) -> None:
    """The curve as a picture: median requests of a search across, loss up."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5))
    axes.plot([rpcs for rpcs, _ in points], [loss for _, loss in points], marker="o")
    axes.axhline(0.05, linestyle=":", color="grey")
    axes.set(xlabel="requests of a search (median)", ylabel="recall@5 lost against a flat index", ylim=(-0.02, None))
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
