"""Blobs: larger things by hash, in chunks of 60 KiB, fetched from all members that have them.

    GetBlob ──> BlobWant manifest ──> one member ──> verified ──> BlobWant chunks, of up to 4 members ──> BlobHave
                     └── BlobNone, silence or a wrong piece: other members; nobody for 30 s: BlobMissing
    PutBlob | PutManifest, PutPiece .. ──> verified likewise ──> BlobHave

A blob's name is the hash of its manifest, which names every chunk's hash: each piece is checked as it comes and
saved at once, so memory holds none, a lost link costs one piece, and a restart goes on where it was.
On disk: "blob/<hash>/<piece>" (-1 the manifest), one row each; "blobs" hash -> size once all are there; "blob-parts"
hash -> wall time of the beginning until then. Parts that nobody went on with for a day are deleted.
Whoever names the hash and shares a team with us gets the blob: a hash is told only within its team.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ioa_p2p.effects import Effect, Emit, Now, Rows, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip.events import BlobHave, BlobKept, BlobMissing
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.gossip import BlobNone, BlobPiece, BlobWant, Manifest
from ioa_p2p.wire.ids import blake

MANIFEST = -1
_WHOLE = "blobs"
_PARTS = "blob-parts"


def name_of(data: bytes) -> bytes:
    """The hash by which `data` is asked for: BLAKE2b-256 of its encoded manifest."""
    return blake(codec.encode(manifest_of(len(data), cut(data))))


def cut(data: bytes) -> Iterator[bytes]:
    """`data` in chunks."""
    for start in range(0, len(data), limits.BLOB_CHUNK_BYTES):
        yield data[start : start + limits.BLOB_CHUNK_BYTES]


def manifest_of(size: int, chunks: Iterator[bytes]) -> Manifest:
    return Manifest(size, tuple(blake(chunk) for chunk in chunks))


def read(rows: Rows, name: bytes) -> bytes | None:
    """The whole blob from disk, or None while pieces are missing. For small ones: `chunks` holds one at a time."""
    manifest = read_manifest(rows, name)
    if manifest is None:
        return None
    found = [_saved(rows, name, piece) for piece in range(len(manifest.chunks))]
    return None if None in found else b"".join(chunk for chunk in found if chunk is not None)


def chunks(rows: Rows, name: bytes) -> Iterator[bytes]:
    """A whole blob, read from disk piece by piece, each checked. Raises PeerError('blob-missing')."""
    manifest = read_manifest(rows, name)
    if manifest is None:
        raise PeerError("blob-missing", "it is not on this disk")
    for piece, known in enumerate(manifest.chunks):
        chunk = _saved(rows, name, piece)
        if chunk is None or blake(chunk) != known:
            raise PeerError("blob-missing", f"piece {piece} is damaged or not on this disk")
        yield chunk


def read_manifest(rows: Rows, name: bytes) -> Manifest | None:
    """What a blob consists of, if that is on disk."""
    saved = _saved(rows, name, MANIFEST)
    return None if saved is None else codec.decode(saved, Manifest)


def _space(name: bytes, piece: int) -> str:
    return f"blob/{name.hex()}/{piece}"


def _saved(rows: Rows, name: bytes, piece: int) -> bytes | None:
    found = rows(_space(name, piece))
    return found[0][1] if found else None


@dataclass(slots=True)
class Fetch:
    """One blob on its way. missing: pieces to ask for, next one last. asked: pieces under way, by whom.

    team: of which it is asked; empty for a blob that we put ourselves, piece by piece. progress: boot time of the
    newest piece (None: it still waits its turn). deadlines: when each member that was asked counts as slow.
    """

    team: bytes
    name: bytes
    progress: float | None = None
    manifest: Manifest | None = None
    missing: list[int] = field(default_factory=lambda: [MANIFEST])
    asked: dict[bytes, set[int]] = field(default_factory=dict[bytes, set[int]])
    deadlines: dict[bytes, float] = field(default_factory=dict[bytes, float])
    without: set[bytes] = field(default_factory=set[bytes])
    slow: set[bytes] = field(default_factory=set[bytes])

    @property
    def whole(self) -> bool:
        return self.manifest is not None and not self.missing and not self.asked

    def is_wanted(self, piece: int) -> bool:
        return piece in self.missing or any(piece in pieces for pieces in self.asked.values())

    def drop(self, peer: bytes, kind: set[bytes]) -> None:
        """A member asked does not help: its pieces are to be asked of another."""
        kind.add(peer)
        self.missing += sorted(self.asked.pop(peer, ()), reverse=True)
        self.deadlines.pop(peer, None)

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

    def take(self, piece: int, manifest: Manifest) -> None:
        """A checked piece is here."""
        if piece == MANIFEST:
            self.manifest, self.missing = manifest, list(range(len(manifest.chunks)))[::-1]
        elif piece in self.missing:
            self.missing.remove(piece)
        for peer, pieces in list(self.asked.items()):
            pieces.discard(piece)
            if not pieces:
                del self.asked[peer], self.deadlines[peer]


class Blobs:
    """peers_of(team): members with a live link now, and how many other members there are at all."""

    def __init__(
        self, rows: Rows, rng: random.Random, peers_of: Callable[[bytes], tuple[Sequence[bytes], int]]
    ) -> None:
        self._rows, self._rng, self._peers_of = rows, rng, peers_of
        self._sizes = {name: int.from_bytes(size) for name, size in rows(_WHOLE)}
        self._parts = {name: int.from_bytes(wall) for name, wall in rows(_PARTS)}
        self._fetches: dict[bytes, Fetch] = {}
        self._puts: dict[bytes, Fetch] = {}
        self._armed: float | None = None

    # -- commands

    def put(self, data: bytes) -> list[Effect]:
        """Keep a blob of ours, all at once. Raises UsageError('blob-too-large' | 'blobs-full')."""
        self._check_room(len(data))
        encoded = codec.encode(manifest_of(len(data), cut(data)))
        name = blake(encoded)
        if name in self._sizes:
            return [Emit(BlobHave(name, len(data)))]
        saves: list[Effect] = [Save(_space(name, MANIFEST), b"", encoded)]
        saves += [Save(_space(name, piece), b"", chunk) for piece, chunk in enumerate(cut(data))]
        return [*saves, *self._finish(name, len(data))]

    def put_manifest(self, now: Now, manifest: Manifest) -> list[Effect]:
        """Begin to keep a blob of ours; `put_piece` brings its chunks. Raises UsageError as `put`."""
        self._check_room(manifest.size)
        encoded = codec.encode(manifest)
        name = blake(encoded)
        if name in self._sizes:
            return [Emit(BlobHave(name, manifest.size))]
        fetch = self._puts[name] = Fetch(b"", name)
        return self._take(now, fetch, MANIFEST, encoded)

    def put_piece(self, now: Now, name: bytes, piece: int, data: bytes) -> list[Effect]:
        """The next chunk. Raises UsageError('file-changed') if it is not what the manifest says."""
        fetch = self._puts.get(name)
        if fetch is None or not fetch.is_wanted(piece):
            return [Emit(BlobKept(name, piece))]
        try:
            kept = self._take(now, fetch, piece, data)
        except PeerError as fault:
            del self._puts[name]
            raise UsageError("file-changed", str(fault), "put it again once nobody writes to it") from None
        return [*kept, Emit(BlobKept(name, piece))]

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
        fetch = self._fetches.pop(name, None) or self._puts.pop(name, None)
        manifest = fetch.manifest if fetch else read_manifest(self._rows, name)
        self._sizes.pop(name, None)
        self._parts.pop(name, None)
        if manifest is None:
            return []
        pieces = range(MANIFEST, len(manifest.chunks))
        index = [Save(_WHOLE, name, None), Save(_PARTS, name, None)]
        return [*index, *[Save(_space(name, piece), b"", None) for piece in pieces]]

    def clean(self, now: Now) -> list[Effect]:
        """Delete parts of blobs that nobody went on with: those of a day ago, and the oldest of too many."""
        idle = [name for name in self._parts if name not in self._fetches and name not in self._puts]
        idle.sort(key=lambda name: self._parts[name])
        fresh = [name for name in idle if self._parts[name] > now.wall - limits.BLOB_PART_S]
        kept = frozenset(fresh[-limits.BLOB_PARTS_MAX :])
        deleted = [effect for name in idle if name not in kept for effect in self.drop(name)]
        return [*deleted, SetTimer("blob-parts", now.boot + limits.BLOB_CLEAN_S)]

    def _check_room(self, size: int) -> None:
        if size > limits.BLOB_BYTES_MAX:
            raise UsageError("blob-too-large", f"a blob of {size} bytes", "64 MiB at most: cut it into several")
        if not self._has_room(size):
            raise UsageError("blobs-full", f"{len(self._sizes)} blobs are kept", "teams that are over make room")

    def _has_room(self, size: int) -> bool:
        return sum(self._sizes.values()) + size <= limits.BLOBS_KEPT_BYTES_MAX

    def _resumed(self, fetch: Fetch) -> Fetch:
        """With the pieces that an earlier, cut-off fetch left on disk."""
        fetch.manifest = read_manifest(self._rows, fetch.name)
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

    def piece(self, now: Now, peer: bytes, message: BlobPiece) -> list[Effect]:
        """A piece of a blob we fetch, from whichever member; copies and pieces of others are dropped."""
        fetch = self._fetches.get(message.hash)
        if fetch is None or not fetch.is_wanted(message.piece):
            return []
        effects = self._take(now, fetch, message.piece, message.data)
        if peer in fetch.deadlines:
            fetch.deadlines[peer] = now.boot + limits.BLOB_ANSWER_S
        return [*effects, *self._step(now)]

    def none(self, now: Now, peer: bytes, message: BlobNone) -> list[Effect]:
        """A member we asked does not have it."""
        fetch = self._fetches.get(message.hash)
        if fetch is None or peer not in fetch.asked:
            return []
        fetch.drop(peer, fetch.without)
        return self._step(now)

    def relink(self, now: Now, node: bytes, up: bool) -> list[Effect]:
        """A link went up or down: go on with others, or with who is back."""
        for fetch in self._fetches.values():
            if up:
                fetch.without.discard(node)
                fetch.slow.discard(node)
            elif node in fetch.asked:
                fetch.drop(node, fetch.slow)
        return self._step(now)

    def handle_timer(self, now: Now) -> list[Effect]:
        self._armed = None
        for fetch in self._fetches.values():
            for peer, deadline in list(fetch.deadlines.items()):
                if deadline <= now.boot + limits.CHAT_EARLY_S:
                    fetch.drop(peer, fetch.slow)
        return self._step(now)

    # -- steps

    def _take(self, now: Now, fetch: Fetch, piece: int, data: bytes) -> list[Effect]:
        """Save a piece; with the last one the blob is whole. Raises PeerError('bad-blob-piece')."""
        manifest = fetch.check(piece, data)
        if piece == MANIFEST and not self._has_room(manifest.size):
            self._fetches.pop(fetch.name, None)
            return [Emit(BlobMissing(fetch.name))]
        fetch.take(piece, manifest)
        fetch.progress = now.boot
        fetch.slow.clear()
        effects: list[Effect] = [Save(_space(fetch.name, piece), b"", data)]
        if piece == MANIFEST:
            self._parts[fetch.name] = int(now.wall)
            effects.append(Save(_PARTS, fetch.name, int(now.wall).to_bytes(8)))
        if not fetch.whole:
            return effects
        (self._fetches if fetch.team else self._puts).pop(fetch.name, None)
        return [*effects, *self._finish(fetch.name, manifest.size)]

    def _finish(self, name: bytes, size: int) -> list[Effect]:
        self._sizes[name] = size
        begun = [Save(_PARTS, name, None)] if self._parts.pop(name, None) is not None else []
        return [Save(_WHOLE, name, size.to_bytes(8)), *begun, Emit(BlobHave(name, size))]

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
        """Pieces in turn, each of the source that has least to do. The manifest is one piece: one source is asked."""
        if fetch.progress is None:
            fetch.progress = now.boot
        effects: list[Effect] = []
        sources = self._sources(fetch)
        while fetch.missing and sources:
            source = min(sources, key=lambda peer: len(fetch.asked.get(peer, ())))
            if len(fetch.asked.get(source, ())) >= limits.BLOB_PIECES_AT_ONCE:
                break
            piece = fetch.missing.pop()
            fetch.asked.setdefault(source, set()).add(piece)
            fetch.deadlines.setdefault(source, now.boot + limits.BLOB_ANSWER_S)
            effects.append(Send(source, BlobWant(fetch.team, fetch.name, piece)))
        return effects

    def _sources(self, fetch: Fetch) -> list[bytes]:
        """Those asked already, then any linked members that did not say no; slow ones only if there is no other."""
        linked, _ = self._peers_of(fetch.team)
        able = [peer for peer in linked if peer not in fetch.without]
        quick = [peer for peer in able if peer not in fetch.slow] or able
        fresh = [peer for peer in quick if peer not in fetch.asked]
        self._rng.shuffle(fresh)
        return [*(peer for peer in quick if peer in fetch.asked), *fresh][: limits.BLOB_SOURCES_MAX]

    def _arm(self) -> list[Effect]:
        """One timer: the earliest overdue answer or give-up."""
        due = [fetch.progress + limits.BLOB_GIVE_UP_S for fetch in self._active() if fetch.progress is not None]
        due += [deadline for fetch in self._active() for deadline in fetch.deadlines.values()]
        if not due or (self._armed is not None and self._armed <= min(due)):
            return []
        self._armed = min(due)
        return [SetTimer("blobs", self._armed)]
