"""The local directory: every valid record held or heard, searched by words and by meaning. A cache, not a journal.

    put(frame) ─┐                                  ┌─ by words (FTS5, BM25) ──> `limit` best ─┐
    put_card ───┼── batch ──> SQLite file ── search┤                                          ├──> [Match]
    forget ─────┘   settled to the bounds          └─ by vector (brute force) > `limit` best ─┘

One row an agent, the newest seq. Nothing is given out past min(first heard + ttl, issued + ttl + 600 s): docs/wire.md,
"Records". A `gone` record stays to that time too, unseen, so that no older one comes back. What is past its time
leaves first, then strangers' oldest heard, those of trust last.

Threads: one writes at a time and one reads at a time, on connections of their own: no write makes a reader wait.
"""

import contextlib
import heapq
import itertools
import sqlite3
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioa_p2p.errors import PeerError, StorageError
from ioa_p2p.storage.database import create, storage_error, storage_errors, transaction
from ioa_p2p.storage.schema import connect, open_writer
from ioa_p2p.storage.terms import expression, keys_of, sayable, text_of
from ioa_p2p.storage.vectors import Comparison, Vectors, vectors
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.records import AgentRecord, Card

_COMMON_PUTS = 1_000  # after so many the common words are counted anew

_PUT = """
INSERT INTO agents (node, agent, seq, gone, heard, until, trust, hash, frame) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (node, agent) DO UPDATE SET seq = excluded.seq, gone = excluded.gone, heard = excluded.heard,
    until = excluded.until, trust = excluded.trust, hash = excluded.hash, frame = excluded.frame
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Known:
    """One agent. frame: its signed record as received. card: untrusted text, None until fetched.

    heard_wall: when these very bytes were first heard.
    """

    record: AgentRecord
    frame: bytes
    card: Card | None
    heard_wall: float


@dataclass(frozen=True, slots=True)
class Match:
    """lexical: BM25 of the words asked for, 0.0 without one of them. dense: cosine, 0.0 without a vector."""

    known: Known
    lexical: float
    dense: float


class Catalogue:
    """The directory in `path`, made (mode 0600) if it is not there.

    Raises StorageError, here and everywhere: 'damaged' (also: not a directory of this version), 'disk-full',
    'read-only', 'locked', 'unreadable', 'closed'. A write that failed left nothing behind.
    """

    def __init__(
        self,
        path: Path,
        records_max: int = limits.CATALOGUE_RECORDS_MAX,
        bytes_max: int = limits.CATALOGUE_BYTES_MAX,
    ) -> None:
        self._path = path
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._write_lock, self._read_lock = threading.RLock(), threading.Lock()
        self._now_wall: float | None = None
        self._puts = 0
        self._touched: set[int] = set()
        self._changed: set[int] = set()
        self._vectors: Vectors | None = None
        self._vectors_of = ("", 0)
        with contextlib.ExitStack() as stack, storage_errors(path):
            create(path)
            self._writer = stack.enter_context(contextlib.closing(open_writer(path)))
            self._reader = stack.enter_context(contextlib.closing(connect(path)))
            self._common = self._count_common()
            self._connections = stack.pop_all()
        self._open = True

    def close(self) -> None:
        """Idempotent; waits for who writes or reads now."""
        with self._write_lock, self._read_lock:
            self._open = False
            self._connections.close()

    @property
    def count(self) -> int:
        """Rows, gone ones included."""
        with self._reading() as db:
            return db.execute("SELECT count(*) FROM agents").fetchone()[0]

    # -- writing

    @contextlib.contextmanager
    def batch(self) -> Generator[None]:
        """Writes within are one transaction, brought to the bounds at its end. May stand within another batch."""
        with self._write_lock, storage_errors(self._path):
            self._check_open()
            if self._writer.in_transaction:
                yield
                return
            self._touched = set()
            with transaction(self._writer):
                yield
                self._settle()
            self._publish()

    def put(self, frame: bytes, record: AgentRecord, heard_wall: float, trust: int = 0) -> None:
        """Keep a record that was proven, if it is news: the newest seq wins, of one seq the lower hash. Its card stays
        known as long as it names the same. trust: the higher, the later it makes room for others."""
        with self.batch():
            self._now_wall = heard_wall
            old = self._row(record.node, record.agent)
            if old is None or _replaces(frame, record.seq, old):
                self._replace(frame, record, heard_wall, trust, old)
            elif old["frame"] == frame and old["trust"] != trust:
                self._writer.execute("UPDATE agents SET trust = ? WHERE id = ?", (trust, old["id"]))

    def put_card(self, hash_: bytes, card: bytes, vector: bytes | None, model: str) -> None:
        """Keep a card for all agents whose records name it; nothing happens if none does. vector: signed bytes, of
        `model`; None leaves what is known. Raises PeerError('undecodable')."""
        assert ids.blake(card) == hash_, "a card goes by its hash"
        codec.decode(card, Card)
        with self.batch():
            query = "SELECT id, frame, card FROM agents WHERE hash = ? AND NOT gone"
            for row in self._writer.execute(query, (hash_,)).fetchall():
                if row["card"] is None:
                    self._describe(row["id"], _record(row["frame"]), row["frame"], card)
                if vector is not None:
                    self._touched.add(row["id"])
                    self._writer.execute("REPLACE INTO vectors VALUES (?, ?, ?)", (row["id"], model, vector))

    def forget(self, node: bytes, agent: str) -> None:
        with self.batch():
            self._remove("node = ? AND agent = ?", node, agent)

    def expire(self, now_wall: float) -> None:
        """Drop what is past its time."""
        with self.batch():
            self._now_wall = now_wall

    def _row(self, node: bytes, agent: str) -> Any:
        return self._writer.execute("SELECT * FROM agents WHERE node = ? AND agent = ?", (node, agent)).fetchone()

    def _replace(self, frame: bytes, record: AgentRecord, heard_wall: float, trust: int, old: Any) -> None:
        until = record.ttl + min(heard_wall, record.issued + limits.CLOCK_SKEW_S)
        if old is not None and old["seq"] == record.seq:
            until = min(until, old["until"])
        twin = self._twin(record)
        values = (record.node, record.agent, record.seq, record.gone, heard_wall, until, trust, record.card, frame)
        ((number,),) = self._writer.execute(_PUT, values).fetchall()
        self._describe(number, record, frame, twin["card"] if twin is not None else None)
        self._share_vector(number, twin)
        if old is None:
            self._limit(record.node)
        self._puts += 1

    def _twin(self, record: AgentRecord) -> Any:
        """An agent with the same card, perhaps itself before: the same program runs on many devices."""
        query = "SELECT id, card FROM agents WHERE hash = ? AND card IS NOT NULL LIMIT 1"
        return None if record.gone else self._writer.execute(query, (record.card,)).fetchone()

    def _describe(self, number: int, record: AgentRecord, frame: bytes, card: bytes | None) -> None:
        """Set the card, what the agent is found by, and how much room it takes."""
        if record.gone:
            text = keys = ""
            self._writer.execute("DELETE FROM words WHERE rowid = ?", (number,))
        else:
            read = codec.decode(card, Card) if card is not None else None
            text, keys = text_of(record, read), keys_of(record, read)
            self._index(number, text, keys)
        size = len(frame) + len(card or b"") + 2 * (len(text.encode()) + len(keys))
        self._writer.execute("UPDATE agents SET card = ?, size = ? WHERE id = ?", (card, size, number))

    def _index(self, number: int, text: str, keys: str) -> None:
        """Only if it changed: an agent is heard of a hundred times before it says something else."""
        old = self._writer.execute("SELECT text, keys FROM words WHERE rowid = ?", (number,)).fetchone()
        if old is None or (old["text"], old["keys"]) != (text, keys):
            self._writer.execute("REPLACE INTO words (rowid, text, keys) VALUES (?, ?, ?)", (number, text, keys))

    def _share_vector(self, number: int, twin: Any) -> None:
        if twin is None:
            self._writer.execute("DELETE FROM vectors WHERE id = ?", (number,))
        elif twin["id"] != number:
            copied = "REPLACE INTO vectors SELECT ?, model, vector FROM vectors WHERE id = ?"
            self._writer.execute(copied, (number, twin["id"]))
        else:
            return
        self._touched.add(number)

    def _limit(self, node: bytes) -> None:
        """Nobody fills it with one key."""
        oldest = "SELECT id FROM agents WHERE node = ? ORDER BY heard DESC, id DESC LIMIT -1 OFFSET ?"
        self._remove(f"id IN ({oldest})", node, limits.CATALOGUE_NODE_RECORDS_MAX)

    def _settle(self) -> None:
        """Down to the bounds: first what is past its time, then strangers' oldest heard."""
        if self._now_wall is not None:
            self._remove("until <= ? OR heard > ?", self._now_wall, self._now_wall + limits.CLOCK_SKEW_S)
        count, size = self._writer.execute("SELECT count(*), total(size) FROM agents").fetchone()
        spare = list[int]()
        rows = self._writer.execute("SELECT id, size FROM agents ORDER BY trust, heard, id")
        while count > self._records_max or size > self._bytes_max:
            number, own = rows.fetchone()
            spare.append(number)
            count, size = count - 1, size - own
        rows.close()
        for number in spare:
            self._remove("id = ?", number)

    def _remove(self, which: str, *values: Any) -> None:
        removed = self._writer.execute(f"DELETE FROM agents WHERE {which} RETURNING id", values).fetchall()
        self._touched.update(number for (number,) in removed)

    def _publish(self) -> None:
        """What readers keep in memory follows what was written."""
        with self._read_lock:
            self._changed |= self._touched
            if self._vectors is None or len(self._changed) > self._records_max:
                self._vectors, self._changed = None, set()
        if self._puts >= _COMMON_PUTS:
            self._puts, self._common = 0, self._count_common()

    def _count_common(self) -> frozenset[str]:
        query = "SELECT term FROM terms WHERE doc > ?"
        return frozenset(term for (term,) in self._writer.execute(query, (limits.CATALOGUE_COMMON_RECORDS,)))

    # -- reading

    def get(self, node: bytes, agent: str, now_wall: float) -> Known | None:
        """None if it is not known, gone, or past its time."""
        with self._reading() as db:
            query = "SELECT id FROM agents WHERE node = ? AND agent = ? AND NOT gone"
            row = db.execute(query, (node, agent)).fetchone()
            return self._known(db, row[0]) if row is not None and row[0] not in _past(db, now_wall) else None

    def of(self, node: bytes, now_wall: float) -> list[Known]:
        """All agents of one node, by name."""
        with self._reading() as db:
            past = _past(db, now_wall)
            rows = db.execute("SELECT id FROM agents WHERE node = ? AND NOT gone ORDER BY agent", (node,))
            return [self._known(db, number) for (number,) in rows.fetchall() if number not in past]

    def undescribed(self, node: bytes) -> list[bytes]:
        """Hashes of the cards of this node's agents that are not known, each once."""
        query = "SELECT DISTINCT hash FROM agents WHERE node = ? AND card IS NULL AND NOT gone"
        with self._reading() as db:
            return [hash_ for (hash_,) in db.execute(query, (node,))]

    def lacking(self, model: str, limit: int) -> list[tuple[bytes, bytes]]:
        """(hash, card) of cards without a vector of this model, at most `limit`."""
        query = (
            "SELECT DISTINCT hash, card FROM agents WHERE card IS NOT NULL AND NOT gone"
            " AND id NOT IN (SELECT id FROM vectors WHERE model = ?) LIMIT ?"
        )
        with self._reading() as db:
            return db.execute(query, (model, limit)).fetchall()

    def search(
        self,
        words: Sequence[str],
        vector: bytes | None,
        model: str,
        limit: int,
        now_wall: float,
        keys: Sequence[str] = (),
    ) -> list[Match]:
        """The `limit` best by words, best first, then those of the `limit` best by vector that are not among them.

        words: as wire/words.py makes them. vector: signed bytes of `model`, its direction counts. keys: what all must
        have: "skill:stats", "out:stats.report", "in:metrics", "word:home" (a word of a tag). With neither words nor
        vector: those that were heard last. Ranking proper is the caller's.
        """
        with self._reading() as db:
            if not words and vector is None:
                return [Match(self._known(db, number), 0.0, 0.0) for number in _newest(db, keys, limit, now_wall)]
            past = _past(db, now_wall)
            lexical = self._lexical(db, words, keys, limit + len(past))
            best = heapq.nlargest(limit + len(past), zip(lexical.values(), lexical, strict=True))
            chosen = [number for _, number in best if number not in past][:limit]
            if vector is None:
                return [Match(self._known(db, number), lexical[number], 0.0) for number in chosen]
            compared = self._compared(db, vector, model)
            near = self._near(db, compared, limit, past, keys)
            return [
                Match(self._known(db, number), lexical.get(number, 0.0), compared.cosine(number))
                for number in dict.fromkeys([*chosen, *near])
            ]

    def _lexical(
        self, db: sqlite3.Connection, words: Sequence[str], keys: Sequence[str], enough: int
    ) -> dict[int, float]:
        """Words that many agents hold cost most and say least: they count only if the others find too few."""
        asked = [word for word in dict.fromkeys(words) if sayable(word)][: limits.CATALOGUE_WORDS_MAX]
        telling = [word for word in asked if word not in self._common]
        found = _scores(db, telling, keys) if telling else {}
        return found if len(found) >= enough or telling == asked else _scores(db, asked, keys)

    def _near(
        self, db: sqlite3.Connection, compared: Comparison, limit: int, past: set[int], keys: Sequence[str]
    ) -> list[int]:
        if not keys:
            return [number for number in compared.nearest(limit + len(past)) if number not in past][:limit]
        passing = _passing(db, keys)
        return [n for n in compared.nearest(self._records_max) if n in passing and n not in past][:limit]

    def _compared(self, db: sqlite3.Connection, vector: bytes, model: str) -> Comparison:
        if self._vectors is None or self._vectors_of != (model, len(vector)):
            self._load_vectors(db, model, len(vector))
        assert self._vectors is not None
        for number in self._changed:
            row = db.execute("SELECT model, vector FROM vectors WHERE id = ?", (number,)).fetchone()
            self._follow(self._vectors, number, row)
        self._changed.clear()
        return self._vectors.compare(vector)

    def _load_vectors(self, db: sqlite3.Connection, model: str, size: int) -> None:
        self._vectors, self._vectors_of = vectors(size), (model, size)
        query = "SELECT id, vector FROM vectors WHERE model = ? AND length(vector) = ?"
        for number, vector in db.execute(query, (model, size)):
            self._vectors.put(number, vector)

    def _follow(self, kept: Vectors, number: int, row: tuple[str, bytes] | None) -> None:
        if row is not None and (row[0], len(row[1])) == self._vectors_of:
            kept.put(number, row[1])
        else:
            kept.drop(number)

    def _known(self, db: sqlite3.Connection, number: int) -> Known:
        frame, card, heard = db.execute("SELECT frame, card, heard FROM agents WHERE id = ?", (number,)).fetchone()
        try:
            return Known(_record(frame), frame, codec.decode(card, Card) if card is not None else None, heard)
        except PeerError as fault:
            raise storage_error("damaged", self._path, str(fault)) from None

    @contextlib.contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        """One moment of the directory, whatever is written meanwhile."""
        with self._read_lock, storage_errors(self._path):
            self._check_open()
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.execute("ROLLBACK")

    def _check_open(self) -> None:
        if not self._open:
            raise StorageError("closed", f"{self._path} is closed")


def _record(frame: bytes) -> AgentRecord:
    """Of a frame that was proven before it was kept."""
    return codec.decode(frame[limits.FRAME_HEADER_BYTES : -limits.SIGNATURE_BYTES], AgentRecord)


def _replaces(frame: bytes, seq: int, old: Any) -> bool:
    """Of two frames with one seq all serve the one with the lower hash. docs/wire.md, "Records"."""
    return seq > old["seq"] or (seq == old["seq"] and ids.blake(frame) < ids.blake(old["frame"]))


def _past(db: sqlite3.Connection, now_wall: float) -> set[int]:
    """Rows whose time is over, or cannot be told: heard in what is now the future."""
    query = "SELECT id FROM agents WHERE until <= ? UNION ALL SELECT id FROM agents WHERE heard > ?"
    return {number for (number,) in db.execute(query, (now_wall, now_wall + limits.CLOCK_SKEW_S))}


def _scores(db: sqlite3.Connection, asked: Sequence[str], keys: Sequence[str]) -> dict[int, float]:
    """BM25 of all that hold one of the words."""
    query = "SELECT rowid, -bm25(words, 1.0, 0.0) FROM words WHERE words MATCH ?"
    return dict(db.execute(query, (expression(asked, keys),)))


def _passing(db: sqlite3.Connection, keys: Sequence[str]) -> set[int]:
    return {number for (number,) in db.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression((), keys),))}


def _newest(db: sqlite3.Connection, keys: Sequence[str], limit: int, now_wall: float) -> list[int]:
    past, passing = _past(db, now_wall), _passing(db, keys) if keys else None
    rows = db.execute("SELECT id FROM agents WHERE NOT gone ORDER BY heard DESC, id DESC")
    fitting = (number for (number,) in rows if number not in past and (passing is None or number in passing))
    return list(itertools.islice(fitting, limit))
