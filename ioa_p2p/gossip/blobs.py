"""Blobs: larger things by hash, in chunks of 60 KiB, fetched from any member that has them.

    GetBlob ──> BlobWant manifest ──> one member ──> verified ──> BlobWant chunks, 8 under way ──> BlobHave
                     └── BlobNone, silence or a wrong piece: the next member; nobody for 30 s: BlobMissing

A blob's name is the hash of its manifest, which names every chunk's hash: each piece is checked as it comes and
saved at once, so memory holds none, a lost link costs one piece, and a restart goes on where it was.
On disk: "blob/<hash>/<piece>" (-1 the manifest), one row each; "blobs" hash -> size once all are there.
Whoever names the hash and shares a team with us gets the blob: a hash is told only within its team.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ioa_p2p.effects import Effect, Emit, Now, Rows, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip.events import BlobHave, BlobMissing
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.gossip import BlobNone, BlobPiece, BlobWant, Manifest
from ioa_p2p.wire.ids import blake

MANIFEST = -1
_WHOLE = "blobs"


def name_of(data: bytes) -> bytes:
    """The hash by which `data` is asked for: BLAKE2b-256 of its encoded manifest."""
    return blake(codec.encode(_manifest(data)))


def read(rows: Rows, name: bytes) -> bytes | None:
    """The whole blob from disk, or None while pieces are missing."""
    manifest = _saved_manifest(rows, name)
    if manifest is None:
        return None
    chunks = [_saved(rows, name, piece) for piece in range(len(manifest.chunks))]
    return None if None in chunks else b"".join(chunk for chunk in chunks if chunk is not None)


def _manifest(data: bytes) -> Manifest:
    return Manifest(len(data), tuple(blake(chunk) for chunk in _chunks(data)))


def _chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), limits.BLOB_CHUNK_BYTES):
        yield data[start : start + limits.BLOB_CHUNK_BYTES]


def _space(name: bytes, piece: int) -> str:
    return f"blob/{name.hex()}/{piece}"


def _saved(rows: Rows, name: bytes, piece: int) -> bytes | None:
    found = rows(_space(name, piece))
    return found[0][1] if found else None


def _saved_manifest(rows: Rows, name: bytes) -> Manifest | None:
    saved = _saved(rows, name, MANIFEST)
    return None if saved is None else codec.decode(saved, Manifest)


@dataclass(slots=True)
class Fetch:
    """One blob on its way. missing: pieces to ask for, next one last. asked: pieces under way from `source`.

    progress, deadline: boot time of the newest piece (None: it still waits its turn), and when the source counts
    as slow.
    """

    team: bytes
    name: bytes
    progress: float | None = None
    deadline: float = 0.0
    manifest: Manifest | None = None
    missing: list[int] = field(default_factory=lambda: [MANIFEST])
    asked: set[int] = field(default_factory=set[int])
    source: bytes | None = None
    without: set[bytes] = field(default_factory=set[bytes])
    slow: set[bytes] = field(default_factory=set[bytes])

    @property
    def whole(self) -> bool:
        return self.manifest is not None and not self.missing and not self.asked

    def drop_source(self, kind: set[bytes]) -> None:
        """The member asked does not help: its pieces are to be asked of another."""
        if self.source is not None:
            kind.add(self.source)
        self.missing += sorted(self.asked, reverse=True)
        self.asked, self.source = set(), None

    def check(self, piece: int, data: bytes) -> Manifest:
        """The manifest the piece belongs to, or is. Raises PeerError('bad-blob-piece')."""
        if piece == MANIFEST and blake(data) == self.name:
            manifest = codec.decode(data, Manifest)
            if len(manifest.chunks) == -(-manifest.size // limits.BLOB_CHUNK_BYTES):
                return manifest
        manifest = self.manifest
        if manifest and 0 <= piece < len(manifest.chunks) and blake(data) == manifest.chunks[piece]:
            return manifest
        raise PeerError("bad-blob-piece", f"piece {piece} does not match its hash")


class Blobs:
    """peers_of(team): members with a live link now, and how many other members there are at all."""

    def __init__(
        self, rows: Rows, rng: random.Random, peers_of: Callable[[bytes], tuple[Sequence[bytes], int]]
    ) -> None:
        self._rows, self._rng, self._peers_of = rows, rng, peers_of
        self._sizes = {name: int.from_bytes(size) for name, size in rows(_WHOLE)}
        self._fetches: dict[bytes, Fetch] = {}
        self._armed: float | None = None

    # -- commands

    def put(self, data: bytes) -> list[Effect]:
        """Keep a blob of ours. Raises UsageError('blob-too-large')."""
        if len(data) > limits.BLOB_BYTES_MAX:
            raise UsageError("blob-too-large", f"a blob of {len(data)} bytes", "16 MiB at most: cut it into several")
        encoded = codec.encode(_manifest(data))
        name = blake(encoded)
        if name in self._sizes:
            return [Emit(BlobHave(name, len(data)))]
        saves: list[Effect] = [Save(_space(name, MANIFEST), b"", encoded)]
        saves += [Save(_space(name, piece), b"", chunk) for piece, chunk in enumerate(_chunks(data))]
        return [*saves, *self._finish(name, len(data))]

    def get(self, now: Now, team: bytes, name: bytes) -> list[Effect]:
        """Fetch a blob, or tell at once that it is here. Raises UsageError('blobs-busy')."""
        if name in self._sizes:
            return [Emit(BlobHave(name, self._sizes[name]))]
        if name in self._fetches:
            return []
        if len(self._fetches) >= limits.BLOB_FETCHES_MAX + limits.BLOB_FETCHES_WAITING_MAX:
            raise UsageError("blobs-busy", f"{len(self._fetches)} blobs are on their way", "ask again later")
        fetch = self._resumed(Fetch(team, name))
        if fetch.manifest is not None and fetch.whole:
            return self._finish(name, fetch.manifest.size)
        self._fetches[name] = fetch
        return self._step(now)

    def drop(self, name: bytes) -> list[Effect]:
        """Forget a blob, or stop fetching it."""
        fetch = self._fetches.pop(name, None)
        manifest = fetch.manifest if fetch else _saved_manifest(self._rows, name)
        if manifest is None:
            return []
        self._sizes.pop(name, None)
        pieces = range(MANIFEST, len(manifest.chunks))
        return [Save(_WHOLE, name, None), *[Save(_space(name, piece), b"", None) for piece in pieces]]

    def _resumed(self, fetch: Fetch) -> Fetch:
        """With the pieces that an earlier, cut-off fetch left on disk."""
        fetch.manifest = _saved_manifest(self._rows, fetch.name)
        if fetch.manifest is not None:
            hashes = enumerate(fetch.manifest.chunks)
            fetch.missing = [i for i, known in hashes if blake(_saved(self._rows, fetch.name, i) or b"") != known][::-1]
        return fetch

    # -- messages

    def want(self, peer: bytes, message: BlobWant) -> list[Effect]:
        """Serve one piece of a blob that we have whole."""
        data = _saved(self._rows, message.hash, message.piece) if message.hash in self._sizes else None
        if data is None:
            return [Send(peer, BlobNone(message.team, message.hash))]
        return [Send(peer, BlobPiece(message.team, message.hash, message.piece, data))]

    def piece(self, now: Now, message: BlobPiece) -> list[Effect]:
        """A piece of a blob we fetch, from whichever member; copies and pieces of others are dropped."""
        fetch = self._fetches.get(message.hash)
        if fetch is None or (message.piece not in fetch.asked and message.piece not in fetch.missing):
            return []
        manifest = fetch.check(message.piece, message.data)
        if message.piece == MANIFEST:
            fetch.manifest, fetch.missing = manifest, list(range(len(manifest.chunks)))[::-1]
        elif message.piece in fetch.missing:
            fetch.missing.remove(message.piece)
        fetch.asked.discard(message.piece)
        fetch.progress, fetch.deadline = now.boot, now.boot + limits.BLOB_ANSWER_S
        fetch.slow.clear()
        save = Save(_space(fetch.name, message.piece), b"", message.data)
        if not fetch.whole:
            return [save, *self._step(now)]
        del self._fetches[fetch.name]
        return [save, *self._finish(fetch.name, manifest.size), *self._step(now)]

    def none(self, now: Now, peer: bytes, message: BlobNone) -> list[Effect]:
        """The member we asked does not have it."""
        fetch = self._fetches.get(message.hash)
        if fetch is None or fetch.source != peer:
            return []
        fetch.drop_source(fetch.without)
        return self._step(now)

    def relink(self, now: Now, node: bytes, up: bool) -> list[Effect]:
        """A link went up or down: go on with others, or with who is back."""
        for fetch in self._fetches.values():
            if up:
                fetch.without.discard(node)
                fetch.slow.discard(node)
            elif fetch.source == node:
                fetch.drop_source(fetch.slow)
        return self._step(now)

    def handle_timer(self, now: Now) -> list[Effect]:
        self._armed = None
        for fetch in self._fetches.values():
            if fetch.asked and fetch.deadline <= now.boot + limits.CHAT_EARLY_S:
                fetch.drop_source(fetch.slow)
        return self._step(now)

    # -- steps

    def _finish(self, name: bytes, size: int) -> list[Effect]:
        self._sizes[name] = size
        return [Save(_WHOLE, name, size.to_bytes(8)), Emit(BlobHave(name, size))]

    def _step(self, now: Now) -> list[Effect]:
        """Give up what nobody has, ask for what can be asked for, wake up when the next answer is due."""
        hopeless = [fetch for fetch in self._active() if self._is_hopeless(now, fetch)]
        for fetch in hopeless:
            del self._fetches[fetch.name]
        effects: list[Effect] = [Emit(BlobMissing(fetch.name)) for fetch in hopeless]
        for fetch in self._active():
            effects += self._ask(now, fetch)
        return effects + self._arm()

    def _active(self) -> list[Fetch]:
        return list(self._fetches.values())[: limits.BLOB_FETCHES_MAX]

    def _is_hopeless(self, now: Now, fetch: Fetch) -> bool:
        _, others = self._peers_of(fetch.team)
        since = now.boot if fetch.progress is None else fetch.progress
        return len(fetch.without) >= others or since + limits.BLOB_GIVE_UP_S <= now.boot + limits.CHAT_EARLY_S

    def _ask(self, now: Now, fetch: Fetch) -> list[Effect]:
        if fetch.progress is None:
            fetch.progress = now.boot
        if fetch.source is None:
            fetch.source = self._choose(fetch)
            fetch.deadline = now.boot + limits.BLOB_ANSWER_S
        effects: list[Effect] = []
        while fetch.source and fetch.missing and len(fetch.asked) < limits.BLOB_PIECES_AT_ONCE:
            piece = fetch.missing.pop()
            fetch.asked.add(piece)
            effects.append(Send(fetch.source, BlobWant(fetch.team, fetch.name, piece)))
        return effects

    def _choose(self, fetch: Fetch) -> bytes | None:
        """Any linked member that did not say no; slow ones only if there is no other."""
        linked, _ = self._peers_of(fetch.team)
        able = [peer for peer in linked if peer not in fetch.without]
        quick = [peer for peer in able if peer not in fetch.slow]
        return self._rng.choice(quick or able) if able else None

    def _arm(self) -> list[Effect]:
        """One timer: the earliest overdue answer or give-up."""
        due = [fetch.progress + limits.BLOB_GIVE_UP_S for fetch in self._active() if fetch.progress is not None]
        due += [fetch.deadline for fetch in self._active() if fetch.asked]
        if not due or (self._armed is not None and self._armed <= min(due)):
            return []
        self._armed = min(due)
        return [SetTimer("blobs", self._armed)]
