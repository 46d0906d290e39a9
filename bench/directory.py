"""How fast a full local directory answers: `./dev bench directory [--json] [--runs N] [--small]`.

    10,000 agents (real descriptions, repeated) ── put, put_card ──> Catalogue on disk ── real questions ──> ms each

`p95_ms`: by words and by vector together; `lexical_p95_ms`: by words alone; `writing_p95_ms`: as the first, while
another thread writes batch after batch. Vectors are random, 512 signed bytes each: what they cost does not depend on
what they say. `cold_start_s`: a fresh process, from its start to the end of its first answer, by words and by vector.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from bench._cold_directory import FOUND, MODEL, VECTOR_BYTES
from bench._corpus import everything
from bench._measure import Figures, arguments, combine, percentile, report, say
from ioa_p2p.storage.catalogue import Catalogue
from ioa_p2p.wire import codec, frames, ids, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Card
from ioa_p2p.wire.words import words

ROOT = Path(__file__).parents[1]
BATCH = 200  # records written at once, as a node does when it joins
COLD_STARTS = 3
WALL = 1_800_000_000.0
BARS = {"p95_ms": 15, "lexical_p95_ms": 5, "cold_start_s": 2}


@dataclass(frozen=True)
class Size:
    records: int = limits.CATALOGUE_RECORDS_MAX
    queries: int = 400


SMALL = Size(500, 40)


def main() -> None:
    wanted = arguments("How fast a full local directory answers, by words and by meaning.")
    runs = [measure(SMALL if wanted.small else Size(), random.Random(seed)) for seed in range(wanted.runs)]
    figures = combine(runs, {})
    bars = {f"{name} <= {bar}": figures[name] <= bar for name, bar in BARS.items()}
    report(figures, bars, runs=len(runs), as_json=wanted.json)


def measure(size: Size, dice: random.Random) -> Figures:
    corpus = everything()
    texts = dice.sample([query.text for query in corpus.queries], size.queries)
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder:
        path = Path(folder) / "directory.db"
        catalogue = Catalogue(path)
        began = time.perf_counter()
        fill(catalogue, [entry.card for entry in corpus.entries], size.records, dice)
        say(f"{len(corpus.entries)} descriptions as {catalogue.count} agents in {time.perf_counter() - began:.1f} s")
        figures = asked(catalogue, texts, dice)
        catalogue.close()
        figures["file_mb"] = path.stat().st_size / 1024**2
        figures["cold_start_s"] = statistics.median(cold_start_s(path, text) for text in texts[:COLD_STARTS])
    return figures


def fill(catalogue: Catalogue, cards: Sequence[Card], count: int, dice: random.Random) -> None:
    """Each description on as many devices as it takes."""
    agents = islice(enumerate(cycle(cards)), count)
    while some := list(islice(agents, BATCH)):
        with catalogue.batch():
            for number, card in some:
                put(catalogue, number, card, dice)


def put(catalogue: Catalogue, number: int, card: Card, dice: random.Random, seq: int = 1) -> None:
    encoded = codec.encode(card)
    hash_ = ids.blake(encoded)
    record = record_of(number, card, hash_, seq)
    body = codec.encode(record)
    catalogue.put(frames.header(Kind.RECORD, body) + body + bytes(limits.SIGNATURE_BYTES), record, WALL)
    catalogue.put_card(hash_, encoded, dice.randbytes(VECTOR_BYTES), MODEL)


def record_of(number: int, card: Card, hash_: bytes, seq: int) -> AgentRecord:
    """As a node publishes it. A signature costs the directory nothing: what it is handed was proven before."""
    skills = tuple(skill.name for skill in card.skills)[: limits.RECORD_SKILLS_MAX]
    address = f"/ip4/192.0.2.{number % 250}/tcp/4001"
    return AgentRecord(
        ids.blake(b"%d" % number), card.name, seq, int(WALL), limits.TTL_S_DEFAULT, False, 1, (address,), "", skills,
        ("team/1", "blob/1"), MODEL, hash_,
    )  # fmt: skip


def asked(catalogue: Catalogue, texts: Sequence[str], dice: random.Random) -> Figures:
    lexical = [took_ms(catalogue, text, None) for text in texts]
    both = [took_ms(catalogue, text, dice.randbytes(VECTOR_BYTES)) for text in texts]
    with written_to(catalogue, dice):
        writing = [took_ms(catalogue, text, dice.randbytes(VECTOR_BYTES)) for text in texts]
    return {
        "p95_ms": percentile(both, 0.95),
        "p50_ms": percentile(both, 0.5),
        "lexical_p95_ms": percentile(lexical, 0.95),
        "lexical_p50_ms": percentile(lexical, 0.5),
        "writing_p95_ms": percentile(writing, 0.95),
    }


def took_ms(catalogue: Catalogue, text: str, vector: bytes | None) -> float:
    began = time.perf_counter()
    catalogue.search(words(text), vector, MODEL, FOUND, WALL + 1)
    return 1_000 * (time.perf_counter() - began)


@contextmanager
def written_to(catalogue: Catalogue, dice: random.Random) -> Generator[None]:
    """Another thread re-issues the records of agents, a batch after the other."""
    cards = [entry.card for entry in everything().entries]
    over = threading.Event()

    def write() -> None:
        for seq in range(2, 1_000_000):
            for start in range(0, len(cards), BATCH):
                with catalogue.batch():
                    for number, card in enumerate(cards[start : start + BATCH], start):
                        put(catalogue, number, card, dice, seq)
                if over.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    yield
    over.set()
    writer.join()


def cold_start_s(path: Path, text: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "bench._cold_directory", str(path), text, str(WALL)], cwd=ROOT, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
