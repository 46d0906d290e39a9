"""The local directory of a node: fed from what it hears, written behind, asked from any thread.

    Heard, CardHeard, our own ──> waiting ── after half a second, in batches, on a thread ──> Catalogue <── search

It is a cache: whatever is wrong with its file, the node starts and goes on, and says so once. A damaged file is set
aside and begun anew; while the disk refuses, nothing new is kept, and what is known is still found if it can be read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ioa_p2p.dht.store import Item
from ioa_p2p.errors import StorageError
from ioa_p2p.mind.meaning import Meaning, card_text
from ioa_p2p.mind.ranking import WORDS_WEIGHT
from ioa_p2p.node import clock
from ioa_p2p.node.sense import Aspect
from ioa_p2p.storage.catalogue import Catalogue, Known, Match
from ioa_p2p.storage.schema import is_broken, set_aside
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import NodeId
from ioa_p2p.wire.records import AgentRecord, Card

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

T = TypeVar("T")

log = logging.getLogger(__name__)


class Keeping:
    """path: the directory's file. trust(node, agent): the higher, the later it makes room for others.

    on_trouble: told, on any thread, of a directory that was begun anew, or that cannot be written.
    """

    def __init__(
        self,
        path: Path,
        trust: Callable[[NodeId, str], int] = lambda node, agent: 0,
        on_trouble: Callable[[str], None] = log.warning,
    ) -> None:
        self.on_written: Callable[[], None] = lambda: None
        self._path = path
        self._trust = trust
        self._on_trouble = on_trouble
        self._catalogue: Catalogue | None = None
        self._refusing = ""
        self._waiting: deque[Callable[[Catalogue], None]] = deque(maxlen=limits.CATALOGUE_WAITING_MAX)
        self._news = asyncio.Event()
        self._model, self._meant = "", True
        self._encode: Callable[[Sequence[Card]], Awaitable[Sequence[bytes]]]
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="directory")
        self._writing: asyncio.Task[None] | None = None

    # -- life

    def start(self, own: NodeId, agents: Iterable[str]) -> None:
        """Open the file, and forget agents of ours that we no longer have."""
        kept = frozenset(agents)
        self._write([lambda catalogue: _forget_former(catalogue, own, kept)])
        self._writing = asyncio.create_task(self._write_behind())

    async def aclose(self) -> None:
        """Write what waits, unless the disk refuses, and close the file."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        await self._behind(self._close)
        self._thread.shutdown(wait=True)

    # -- what is heard

    def heard(self, record: AgentRecord, frame: bytes) -> None:
        """Of a proven record."""
        heard_wall, trust = clock.now().wall, self._trust(record.node, record.agent)
        self._soon(lambda catalogue: catalogue.put(frame, record, heard_wall, trust))

    def card(self, card_hash: bytes, card: bytes) -> None:
        """A card that is what its hash names, and decodes."""
        self._soon(lambda catalogue: catalogue.put_card(card_hash, card, None, ""))
        self._meant = False

    def own(self, node: NodeId, card: Card, held: Iterable[Item]) -> None:
        """An agent of ours, whose record is among those held: it stands in the directory too."""
        for item in held:
            if isinstance(item.body, AgentRecord) and (item.body.node, item.body.agent) == (node, card.name):
                self.heard(item.body, item.raw)
                self.card(item.body.card, codec.encode(card))

    def mean_by(self, model: str, encode: Callable[[Sequence[Card]], Awaitable[Sequence[bytes]]]) -> None:
        """From now on every card gets its vector of this model. encode: gives one a card, as `packed` makes them."""
        self._model, self._encode = model, encode
        self._meant = False
        self._news.set()

    # -- what is asked; all block for some ms, on any thread

    def search(
        self, words: Sequence[str], vector: bytes | None, model: str, limit: int, keys: Sequence[str] = ()
    ) -> list[Match]:
        """See `Catalogue.search`. Nothing is found while the directory cannot be read."""
        now_wall = clock.now().wall
        return self._read(lambda catalogue: catalogue.search(words, vector, model, limit, now_wall, keys)) or []

    def find(
        self, words: Sequence[str], aspect: Aspect | None, limit: int, keys: Sequence[str] = ()
    ) -> list[tuple[AgentRecord, Card]]:
        """The `limit` likeliest whose cards are known, the best first."""
        vector, model = (packed(aspect.vector), aspect.model) if aspect is not None else (None, "")
        found = self.search(words, vector, model, 2 * limit, keys)
        found.sort(key=lambda match: match.dense + WORDS_WEIGHT * match.lexical, reverse=True)
        described = [(match.known.record, match.known.card) for match in found]
        return [(record, card) for record, card in described if card is not None][:limit]

    def get(self, node: NodeId, agent: str) -> Known | None:
        now_wall = clock.now().wall
        return self._read(lambda catalogue: catalogue.get(node, agent, now_wall))

    def undescribed(self, node: NodeId) -> list[bytes]:
        """Hashes of the cards of its agents that are not known."""
        return self._read(lambda catalogue: catalogue.undescribed(node)) or []

    @property
    def count(self) -> int:
        """Agents that are known."""
        return self._read(lambda catalogue: catalogue.count) or 0

    @property
    def waiting(self) -> int:
        """News not yet written."""
        return len(self._waiting)

    def _read(self, ask: Callable[[Catalogue], T]) -> T | None:
        catalogue = self._catalogue
        if catalogue is None:
            return None
        try:
            return ask(catalogue)
        except StorageError as fault:
            self._refused(fault)
            if is_broken(fault):
                self._thread.submit(self._begin_anew, catalogue)
            return None

    # -- writing, on the thread

    def _soon(self, write: Callable[[Catalogue], None]) -> None:
        self._waiting.append(write)
        self._news.set()

    async def _write_behind(self) -> None:
        while True:
            await self._news.wait()
            await asyncio.sleep(limits.CATALOGUE_WAIT_S)
            self._news.clear()
            while self._waiting:
                await self._behind(self._write, self._take())
            self.on_written()
            if self._model and not self._meant:
                await self._mean()

    async def _mean(self) -> None:
        """Vectors for the cards that lack one, some at a time. What cannot be written is tried with the next card."""
        self._meant = True
        while not self._refusing and (lacking := await self._behind(self._lacking)):
            try:
                found = await self._encode([codec.decode(card, Card) for _, card in lacking])
            except Exception:
                log.exception("the encoder failed on %d cards", len(lacking))
                return
            rows = [(*row, vector) for row, vector in zip(lacking, found, strict=True)]
            await self._behind(self._write, [partial(_put_vector, self._model, row) for row in rows])

    def _lacking(self) -> list[tuple[bytes, bytes]]:
        return self._read(lambda catalogue: catalogue.lacking(self._model, limits.CATALOGUE_ENCODED_AT_ONCE)) or []

    async def _behind(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _take(self) -> list[Callable[[Catalogue], None]]:
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), limits.CATALOGUE_BATCH_MAX))]

    def _write(self, writes: Sequence[Callable[[Catalogue], None]]) -> None:
        """What the disk refuses is lost: it is heard again."""
        try:
            catalogue = self._catalogue if self._catalogue is not None else self._open()
            with catalogue.batch():
                for write in writes:
                    write(catalogue)
        except StorageError as fault:
            self._refused(fault)
            if is_broken(fault) and self._catalogue is not None:
                self._begin_anew(self._catalogue)
        except Exception:
            log.exception("the local directory loses %d news", len(writes))
        else:
            self._refusing = ""

    def _open(self) -> Catalogue:
        try:
            self._catalogue = Catalogue(self._path)
        except StorageError as fault:
            if not is_broken(fault):
                raise
            self._catalogue = self._anew()
        return self._catalogue

    def _begin_anew(self, broken: Catalogue) -> None:
        """Unless that is done already: several may meet the damage."""
        if self._catalogue is not broken:
            return
        self._catalogue = None
        broken.close()
        try:
            self._catalogue = self._anew()
        except StorageError as fault:
            self._refused(fault)

    def _anew(self) -> Catalogue:
        aside = set_aside(self._path)
        self._on_trouble(f"the local directory was damaged and is begun anew; the old one is {aside}")
        return Catalogue(self._path)

    def _refused(self, fault: StorageError) -> None:
        """Said once, until it works again."""
        if fault.code not in (self._refusing, "closed"):
            self._on_trouble(f"the local directory cannot be used: {fault}")
        self._refusing = fault.code

    def _close(self) -> None:
        while self._waiting:
            self._write(self._take())
        if self._catalogue is not None:
            self._catalogue.close()


def packed(vector: "Vectors") -> bytes:
    """A direction as signed bytes, which is how the directory keeps it."""
    return (vector * (127 / max(float(abs(vector).max()), 1e-9))).round().astype("int8").tobytes()


def encoded(model: Meaning, cards: Sequence[Card]) -> list[bytes]:
    """What each card is about. Blocks."""
    return [packed(vector) for vector in model.encode([card_text(card) for card in cards])]


def _put_vector(model: str, row: tuple[bytes, bytes, bytes], catalogue: Catalogue) -> None:
    catalogue.put_card(*row, model)


def _forget_former(catalogue: Catalogue, own: NodeId, agents: frozenset[str]) -> None:
    for known in catalogue.of(own, clock.now().wall):
        if known.record.agent not in agents:
            catalogue.forget(own, known.record.agent)
