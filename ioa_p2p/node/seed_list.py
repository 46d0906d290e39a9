"""Signed seed lists: made by who runs a mesh, believed by pinned keys, never older than one seen before.

    sign ──> frame ── hex text ──> FILE ── read, open_list, judge ──> ListSeeds: the newest of each signer, on disk

docs/wire.md, "Seed lists". Every refusal is a UsageError whose message says what is wrong with the list.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError, StorageError, UsageError
from ioa_p2p.node.config import Seed, parse_seed
from ioa_p2p.storage.base import Storage
from ioa_p2p.wire import frames, ids, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.seeds import SeedList

SPACE = "seeds"
LOOK_S = 10.0  # how often the file's date is read
HINT_NEW = "get the newest list from whoever runs the mesh"

log = logging.getLogger(__name__)


def sign(key: NodeKey, network: bytes, seeds: Sequence[Seed], number: int, issued: int, life_s: int) -> bytes:
    """The frame of a new list. issued: wall seconds. Raises UsageError('bad-list') for what nobody would take."""
    if not 0 < len(seeds) <= limits.SEED_LIST_MAX or not 0 < life_s <= limits.SEED_LIST_S_MAX:
        wanted = f"1 to {limits.SEED_LIST_MAX} seeds, good for at most {limits.SEED_LIST_S_MAX // 86_400} days"
        raise UsageError("bad-list", f"a list holds {wanted}", "sign a new one before the old one expires")
    body = SeedList(key.node, number, issued, issued + life_s, tuple(str(seed) for seed in seeds))
    return envelope.seal(key, network, Kind.SEEDS, body)


def write(file: Path, frame: bytes) -> None:
    """As hex text, whole or not at all: a node may read it at any moment."""
    partial = file.with_name(f".{file.name}.part")
    partial.write_text(frame.hex() + "\n", encoding="ascii")
    os.replace(partial, file)


def read(file: Path) -> bytes:
    """The frame in a file. Raises UsageError('no-list' | 'bad-list')."""
    try:
        with file.open("rb") as opened:
            text = opened.read(limits.SEED_LIST_FILE_BYTES_MAX + 1)
    except OSError as fault:
        raise UsageError("no-list", f"{file}: {fault.strerror}", "is the path right?") from None
    try:
        return bytes.fromhex(text[: limits.SEED_LIST_FILE_BYTES_MAX].decode("ascii"))
    except ValueError:
        raise UsageError("bad-list", f"{file} is no seed list: it is not hex text", HINT_NEW) from None


def open_list(frame: bytes, network: bytes) -> SeedList:
    """What its signer wrote. Raises UsageError('bad-list') unless it is a signed list of this mesh."""
    try:
        return envelope.open_frame(frames.parse(frame), network, Kind.SEEDS, SeedList)
    except PeerError as fault:
        why = "it was changed after it was signed, or is of another mesh"
        if fault.code != "bad-signature":
            why = f"it was changed after it was signed, or is no seed list ({fault})"
        raise UsageError("bad-list", f"no good seed list: {why}", HINT_NEW) from None


def judge(told: SeedList, keys: Sequence[bytes], wall: float) -> None:
    """Whether to believe it now. Raises UsageError('not-pinned' | 'not-yet-valid' | 'expired' | 'bad-list')."""
    signer = ids.node_text(told.node)
    if told.node not in keys:
        hint = f"if you trust whoever holds that key: seed_list.keys = [{signer!r}]"
        raise UsageError("not-pinned", f"the list is signed by {signer}, whom this node does not trust", hint)
    if told.expires - told.issued > limits.SEED_LIST_S_MAX:
        raise UsageError("bad-list", "the list claims to be good for too long", HINT_NEW)
    if told.issued > wall + limits.CLOCK_SKEW_S:
        raise UsageError("not-yet-valid", f"the list is of {date(told.issued)}, in the future", "is the clock right?")
    if told.expires <= wall:
        raise UsageError("expired", f"the list expired on {date(told.expires)}", HINT_NEW)


def succeed(frame: bytes, told: SeedList, before: bytes | None, network: bytes) -> None:
    """Whether it may follow the newest list seen of its signer. Raises UsageError('older' | 'two-lists')."""
    if before is None or before == frame:
        return
    number = open_list(before, network).number
    if told.number < number:
        raise UsageError("older", f"list number {told.number} is older than number {number}, seen before", HINT_NEW)
    if told.number == number:
        raise UsageError("two-lists", f"two lists claim number {number}: the first one counts", HINT_NEW)


def seeds_of(told: SeedList) -> list[Seed]:
    """The entries that we understand; a later version may write others."""
    seeds: list[Seed] = []
    for text in told.seeds:
        with suppress(UsageError):
            seeds.append(parse_seed(text))
    return seeds


def date(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(wall))


class ListSeeds:
    """The seeds of the newest list of each pinned signer. file: looked at again and again, read when it changed.

    A list once taken is kept in `storage`, so that neither a lost file nor an older one brings an older list back.
    """

    name = "list"
    every_s = LOOK_S

    def __init__(
        self,
        file: Path,
        keys: Sequence[bytes],
        network: bytes,
        storage: Storage,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._keys = keys
        self._network = network
        self._storage = storage
        self._wall = wall
        self._seen: tuple[int, ...] | None = None
        self._refused = ""
        self._expired = ""

    @property
    def problem(self) -> str:
        return self._refused or self._expired

    async def look(self) -> Sequence[Seed]:
        await asyncio.to_thread(self._read_changed)
        lists = sorted(filter(None, map(self._kept, self._keys)), key=_newest_first)
        good = [told for told in lists if told.expires > self._wall()]
        self._expire([told for told in lists if told not in good])
        return [seed for told in good for seed in seeds_of(told)]

    def _read_changed(self) -> None:
        """Take the file's list if it is news and good. What is wrong with it is told once."""
        stamp = _stamp(self._file)
        if stamp == self._seen:
            return
        try:
            self._refused = ""
            if stamp is not None:
                self._take(read(self._file))
            self._seen = stamp
        except UsageError as fault:
            self._seen, self._refused = stamp, f"seed list {self._file}: {fault} ({fault.hint})"
            log.warning(self._refused)
        except StorageError as fault:  # the disk's fault, told elsewhere: the same file is tried again
            self._refused = f"seed list: {fault}"

    def _take(self, frame: bytes) -> None:
        told = open_list(frame, self._network)
        judge(told, self._keys, self._wall())
        before = self._storage.get(SPACE, self._network + told.node)
        succeed(frame, told, before, self._network)
        if before != frame:
            self._storage.commit([Save(SPACE, self._network + told.node, frame)])
            log.info("seed list %d of %s: %d seeds", told.number, ids.node_short(told.node), len(told.seeds))

    def _kept(self, key: bytes) -> SeedList | None:
        """The newest list of a signer."""
        frame = self._storage.get(SPACE, self._network + key)
        return open_list(frame, self._network) if frame is not None else None

    def _expire(self, lists: Sequence[SeedList]) -> None:
        told = f"the seed list expired on {date(lists[0].expires)}: {HINT_NEW}" if lists else ""
        if told and told != self._expired:
            log.warning(told)
        self._expired = told


def _newest_first(told: SeedList) -> int:
    return -told.issued


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Changes when the file does."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
