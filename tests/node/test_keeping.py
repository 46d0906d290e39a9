"""The node's local directory: fed behind, asked at once, and never in the way of the node."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ioa_p2p.node import clock
from ioa_p2p.node.keeping import Keeping, packed
from ioa_p2p.node.sense import Aspect
from ioa_p2p.storage.schema import SCHEMA_VERSION
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.words import words
from tests.node.mesh import HELLO, Mesh
from tests.storage.agents import card, frame_of, node, record_of

WAIT_S = 60.0
OWN = node(0)
CHART = card("charts", "Draws charts of samples.", Skill("chart.bars"))
NEWS = card("news", "Tells the news of the day.")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "directory.db"


@pytest.fixture
def troubles() -> list[str]:
    return []


@pytest.fixture
async def keeping(path: Path, troubles: list[str]) -> AsyncIterator[Keeping]:
    keeping = started(path, troubles)
    yield keeping
    await keeping.aclose()


def started(path: Path, troubles: list[str], agents: tuple[str, ...] = ()) -> Keeping:
    keeping = Keeping(path, on_trouble=troubles.append)
    keeping.start(OWN, agents)
    return keeping


def hear(keeping: Keeping, number: int, card: Card) -> None:
    """A record issued now, and its card."""
    record, encoded = record_of(number, card, issued=clock.now().wall), codec.encode(card)
    keeping.heard(record, frame_of(record))
    keeping.card(ids.blake(encoded), encoded)


def found(keeping: Keeping, text: str) -> list[str]:
    return [match.known.record.agent for match in keeping.search(words(text), None, "", 20)]


def put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def spoil(path: Path, frame: bytes) -> None:
    """Nothing of the frame is left; SQLite itself sees no fault."""
    content = path.read_bytes()
    assert frame in content
    path.write_bytes(content.replace(frame, bytes(len(frame))))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.02)


async def test_what_is_heard_is_found_soon_and_after_a_restart(path: Path, troubles: list[str]) -> None:
    keeping = started(path, troubles)
    hear(keeping, 1, CHART)
    await until(lambda: found(keeping, "samples") == ["charts"])
    hear(keeping, 2, NEWS)
    await keeping.aclose()
    again = started(path, troubles)
    assert found(again, "samples") == ["charts"]
    assert found(again, "news") == ["news"], "what waited was written at the end"
    assert again.get(node(2), "news") is not None
    await again.aclose()
    assert troubles == []


async def test_more_than_one_batch_is_written_at_once(keeping: Keeping) -> None:
    for number in range(limits.CATALOGUE_BATCH_MAX + 7):
        hear(keeping, number, CHART)
    await until(lambda: keeping.count == limits.CATALOGUE_BATCH_MAX + 7)


async def test_more_than_can_wait_loses_the_oldest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CATALOGUE_WAITING_MAX", 2)
    keeping = started(path, [])
    for number, one in enumerate((CHART, NEWS)):
        hear(keeping, number, one)
    await keeping.aclose()
    again = started(path, [], ("charts", "news"))
    assert (found(again, "charts"), found(again, "news")) == ([], ["news"])
    await again.aclose()


async def test_an_agent_of_ours_that_is_no_more_is_forgotten_at_the_next_start(path: Path) -> None:
    keeping = started(path, [])
    for one in (CHART, NEWS):
        hear(keeping, 0, one)
    hear(keeping, 1, CHART)
    await keeping.aclose()
    again = started(path, [], ("news",))
    assert again.get(OWN, "charts") is None
    assert again.get(OWN, "news") is not None
    assert again.get(node(1), "charts") is not None
    await again.aclose()


@pytest.mark.parametrize("content", [b"no database at all " * 300, b"SQLite format 3\0" + bytes(5_000)])
async def test_a_damaged_file_is_set_aside_and_begun_anew(path: Path, troubles: list[str], content: bytes) -> None:
    put(path, content)
    keeping = started(path, troubles)
    hear(keeping, 1, CHART)
    await until(lambda: found(keeping, "charts") == ["charts"])
    await keeping.aclose()
    assert path.with_name("directory.db.damaged").read_bytes() == content
    assert len(troubles) == 1
    assert "damaged" in troubles[0]


async def test_a_file_of_a_newer_version_keeps_every_byte_and_the_node_goes_on_without_it(
    path: Path, troubles: list[str]
) -> None:
    await started(path, troubles).aclose()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = content_of(path)
    keeping = started(path, troubles)
    hear(keeping, 1, CHART)
    assert found(keeping, "charts") == []
    await keeping.aclose()
    assert content_of(path) == before
    assert len(troubles) == 1
    assert f"has version {SCHEMA_VERSION + 1}" in troubles[0]


async def test_damage_met_while_running_is_set_aside_and_what_is_heard_next_is_found(
    path: Path, troubles: list[str]
) -> None:
    filled = started(path, troubles)
    hear(filled, 1, NEWS)
    await until(lambda: filled.get(node(1), "news") is not None)
    known = filled.get(node(1), "news")
    assert known is not None
    await filled.aclose()
    spoil(path, known.frame)
    keeping = started(path, troubles)
    assert troubles == []
    assert found(keeping, "news") == []
    await until(lambda: any("begun anew" in trouble for trouble in troubles))
    hear(keeping, 1, CHART)
    await until(lambda: found(keeping, "charts") == ["charts"])
    await keeping.aclose()


async def test_a_folder_that_refuses_is_said_once_and_nothing_else_fails(tmp_path: Path, troubles: list[str]) -> None:
    folder = tmp_path / "later"
    keeping = started(folder / "directory.db", troubles)
    for _ in range(3):
        hear(keeping, 1, CHART)
        assert found(keeping, "charts") == []
    await until(lambda: not keeping.waiting)
    assert len(troubles) == 1
    folder.mkdir()
    hear(keeping, 1, CHART)
    await until(lambda: found(keeping, "charts") == ["charts"])
    await keeping.aclose()


async def test_a_bug_in_one_write_does_not_end_the_writing(keeping: Keeping) -> None:
    record = record_of(1, NEWS)
    keeping.heard(record, None)  # type: ignore[arg-type]
    await until(lambda: not keeping.waiting)
    hear(keeping, 2, CHART)
    await until(lambda: found(keeping, "charts") == ["charts"])


# -- by meaning


def likeness(cards: Sequence[Card]) -> list[bytes]:
    """A model that knows two things: charts, and everything else."""
    return [bytes([127, 0]) if "chart" in card.description.lower() else bytes([0, 127]) for card in cards]


def aspect(*direction: float) -> Aspect:
    return Aspect("two", (), b"", (), np.array(direction, np.float32))


async def test_cards_get_vectors_of_a_model_once_there_is_one_and_so_do_those_heard_later(keeping: Keeping) -> None:
    asked: list[int] = []

    async def encode(cards: Sequence[Card]) -> list[bytes]:
        asked.append(len(cards))
        return likeness(cards)

    def order(direction: Aspect, keys: Sequence[str] = (), words: Sequence[str] = (), limit: int = 9) -> list[str]:
        return [record.agent for record, _ in keeping.find(words, direction, limit, keys)]

    hear(keeping, 1, CHART)
    await until(lambda: found(keeping, "charts") == ["charts"])
    keeping.mean_by("two", encode)
    await until(lambda: order(aspect(1, 0)) == ["charts"])
    hear(keeping, 2, NEWS)
    await until(lambda: order(aspect(0.9, 0.1)) == ["charts", "news"])
    assert order(aspect(0.1, 0.9)) == ["news", "charts"]
    assert order(aspect(0, 1), words=["chart"], limit=1) == ["news"]
    assert order(aspect(0, 1), ["skill:chart"]) == ["charts"]
    assert asked == [1, 1], "no card is encoded twice"


async def test_an_encoder_that_fails_leaves_the_search_by_words(keeping: Keeping) -> None:
    async def encode(cards: Sequence[Card]) -> list[bytes]:
        raise RuntimeError("foreign code")

    keeping.mean_by("two", encode)
    hear(keeping, 1, CHART)
    await until(lambda: found(keeping, "charts") == ["charts"])
    hear(keeping, 2, NEWS)
    await until(lambda: found(keeping, "news") == ["news"])


async def test_an_agent_whose_card_is_not_known_is_not_offered(keeping: Keeping) -> None:
    record = record_of(1, CHART, issued=clock.now().wall)
    keeping.heard(record, frame_of(record))
    await until(lambda: found(keeping, "charts") == ["charts"])
    assert keeping.find(["chart"], None, 9) == []


def test_a_packed_vector_keeps_its_direction() -> None:
    dice = np.random.default_rng(1)
    for vector in dice.normal(size=(20, 64)).astype(np.float32):
        kept = np.frombuffer(packed(vector), np.int8).astype(np.float32)
        assert vector @ kept / np.linalg.norm(vector) / np.linalg.norm(kept) > 0.999
    assert packed(np.zeros(4, np.float32)) == bytes(4)


# -- in a whole node


async def test_a_node_knows_others_agents_after_a_restart_with_nobody_there(tmp_path: Path) -> None:
    async with Mesh(tmp_path) as mesh:
        mesh.make("left", agents=[("hello", HELLO)])
        mesh.make("right", seeds=("left",), agents=[("greeter", HELLO)])
        left, right = await mesh.start("left"), await mesh.start("right")
        await until(lambda: right.keeping.get(left.key.node, "hello") is not None)
        await until(lambda: right.keeping.get(right.key.node, "greeter") is not None)
        await until(lambda: not right.keeping.undescribed(left.key.node))
        for name in ("right", "left"):  # else left says that it leaves
            await mesh.stop(name)
        again = await mesh.start("right")
        assert again.keeping.get(left.key.node, "hello") is not None
        assert found(again.keeping, "hello") == ["hello"]
        offered = again.keeping.find(["greet"], None, 9, ["out:text.greeting"])
        assert [record.agent for record, _ in offered if record.node == left.key.node] == ["hello"]


async def test_a_node_starts_with_a_damaged_directory_and_says_so(tmp_path: Path) -> None:
    async with Mesh(tmp_path) as mesh:
        config = mesh.make("alone", agents=[("hello", HELLO)])
        put(config.home.directory, b"garbage" * 1_000)
        alone = await mesh.start("alone")
        await until(alone.ready.is_set)
        assert any("directory" in alarm for alarm in alone.alarms.texts)
