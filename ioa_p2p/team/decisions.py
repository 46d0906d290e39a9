"""The decision log of one team at one member, and what must survive a crash beside it: term, vote, commit.

    0 Found ... archive, on disk only ... | anchor + state | step | step | Elect(term 3, certificate) | ...
              each entry holds the hash of the frame before it                  ^ commit: never truncated below

At first the anchor is entry 0; a checkpoint moves it up. Changes are kept here and as Saves that `drain` hands out:
space "decision/<team hex>", key index u64be, value frame; "archive/<team hex>" likewise, for what is below the anchor;
"vote/<team hex>", rows "state" and "commit"; "base/<team hex>", rows "base" and "state".
"""

from itertools import accumulate
from typing import NamedTuple, TypeVar

from ioa_p2p.crypto.envelope import open_frame, seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Rows, Save
from ioa_p2p.errors import PeerError, StorageError, UsageError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.decision import Certificate, Entry, RosterLink
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import roster_step

T = TypeVar("T")

NO_HASH = bytes(32)
_STATE, _COMMIT, _BASE = b"state", b"commit", b"base"


class Held(NamedTuple):
    """An entry of the log with its frame and the frame's hash (32 B)."""

    entry: Entry
    frame: bytes
    hash: bytes


class HardState(Message, frozen=True):
    """What a member must never forget. vote: the candidate voted for in `term`, or empty.

    may_vote: False at a member that lost its disk; see `Election`.
    """

    incarnation: int
    term: int
    vote: bytes
    may_vote: bool


class Base(Message, frozen=True):
    """What stands below the log once a checkpoint is decided. anchor: frame of the last entry that the state holds;
    certificate: of its term. links: the roster changes up to it. state: hash of the state's bytes, which are a row
    of their own. decided_at: index of the checkpoint's entry. archived: the lowest index that is still on disk."""

    anchor: bytes
    certificate: Certificate
    links: tuple[RosterLink, ...]
    state: bytes
    decided_at: int
    archived: int


def founding_frame(key: NodeKey, network: bytes, team: bytes, incarnation: int, at: int, step: bytes) -> bytes:
    """Entry 0, signed by the founder: term 0, committed by construction. at: wall seconds."""
    return seal(key, network, Kind.DECISION, Entry(key.node, team, incarnation, 0, 0, NO_HASH, at, (), step))


def open_founding(frame: bytes, network: bytes, team: bytes, incarnation: int) -> Entry:
    """Raises PeerError('wrong-founding' or as frames do)."""
    entry = open_entry(frame, network)
    if (entry.team, entry.incarnation) != (team, incarnation):
        raise PeerError("wrong-founding", "it founds another team")
    if (entry.index, entry.term, entry.previous, entry.certificate) != (0, 0, NO_HASH, ()):
        raise PeerError("wrong-founding", "entry 0 has term 0, nothing before it and no certificate")
    return entry


def open_entry(frame: bytes, network: bytes) -> Entry:
    """A verified signature and a typed body; its place in a log is not checked. Raises PeerError."""
    return open_frame(frames.parse(frame), network, Kind.DECISION, Entry)


def spaces(team: bytes) -> tuple[str, str, str, str]:
    """Where a team's entries are saved, its term, vote and commit, what stands below the log, and old entries."""
    return f"decision/{team.hex()}", f"vote/{team.hex()}", f"base/{team.hex()}", f"archive/{team.hex()}"


def held_of(frame: bytes) -> Held:
    """An entry of our own rows, or one that was verified; its signature is not checked here. Raises PeerError."""
    return Held(codec.decode(frames.parse(frame).body, Entry), frame, blake(frame))


def next_entry(log: "Decisions", key: NodeKey, network: bytes, at: int, step: bytes, certificate: Certificate) -> Held:
    """The entry that the coordinator of the log's term signs next. at: wall seconds."""
    founding, index = log.founding.entry, log.last_index + 1
    entry = Entry(key.node, founding.team, founding.incarnation, log.term, index, log.last.hash, at, certificate, step)
    frame = seal(key, network, Kind.DECISION, entry)
    return Held(entry, frame, blake(frame))


class Decisions:
    """Made from what was saved; a first start saves its state at once, so that the next one is known as such."""

    def __init__(self, founding: Held, network: bytes, saved: Rows, *, may_vote: bool = True) -> None:
        """founding: entry 0, checked. Raises UsageError('other-incarnation'), StorageError('damaged')."""
        self._log_space, self._vote_space, self._base_space, self._archive_space = spaces(founding.entry.team)
        self._incarnation = founding.entry.incarnation
        self.founding = founding
        self.base: Base | None = None
        self.state = b""
        self._log = [founding]
        self._pending: dict[tuple[str, bytes], bytes | None] = {}
        self.term, self.vote, self.may_vote, self.commit = 0, b"", may_vote, 0
        votes = dict(saved(self._vote_space))
        if _STATE in votes:
            self._load(votes, network, saved)
        else:
            self._save_state()

    # -- reading

    @property
    def first_index(self) -> int:
        """The anchor's: entries after it are in memory, what is before is in the state."""
        return self._log[0].entry.index

    @property
    def last_index(self) -> int:
        return self.first_index + len(self._log) - 1

    @property
    def last(self) -> Held:
        return self._log[-1]

    @property
    def end(self) -> tuple[int, int]:
        """(last term, last index): the greater, the more up to date (Raft section 5.4.1)."""
        return self.last.entry.term, self.last_index

    def __getitem__(self, index: int) -> Held:
        held = self.get(index)
        assert held is not None, f"entry {index} is not in memory"
        return held

    def get(self, index: int) -> Held | None:
        if index == 0:
            return self.founding
        return self._log[index - self.first_index] if self.first_index <= index <= self.last_index else None

    def between(self, first: int, last: int) -> list[Held]:
        """Entries first..last, both included, as far as they are in memory, behind the anchor."""
        start = max(first, self.first_index + 1) - self.first_index
        return self._log[start : max(start, last + 1 - self.first_index)]

    def certificate_of(self, index: int) -> Certificate:
        """The votes for the term of the entry at `index`; empty for entry 0."""
        term = self[index].entry.term
        for held in reversed(self.between(self.first_index, index)):
            if held.entry.certificate:
                return held.entry.certificate if held.entry.term == term else ()
        return self.base.certificate if self.base is not None else ()

    def links(self, last: int) -> tuple[RosterLink, ...]:
        """Every roster change since entry 0 up to index `last`, each with its proof."""
        changes = (held for held in self.between(0, last) if roster_step(held.entry.step) is not None)
        new = (RosterLink(held.frame, self.certificate_of(held.entry.index)) for held in changes)
        return (*(self.base.links if self.base is not None else ()), *new)

    def batch(self, first: int, room: int) -> tuple[bytes, ...]:
        """Frames from index `first` on that fit one Append, at most `room` of them."""
        frames_ = [held.frame for held in self.between(first, first + min(room, limits.APPEND_ENTRIES_MAX) - 1)]
        sizes = accumulate(len(frame) for frame in frames_)
        return tuple(frame for frame, size in zip(frames_, sizes, strict=True) if size <= limits.APPEND_BYTES_MAX)

    def matches(self, index: int, term: int) -> bool:
        held = self.get(index)
        return held is not None and held.entry.term == term

    def hint(self, index: int) -> int:
        """Where a coordinator goes on that was wrong about our entry `index`: after our end if there is a gap,
        else after the commit, below which no two logs differ."""
        return self.last_index if index > self.last_index else self.commit

    def check_room(self, step: bytes) -> None:
        """Raises UsageError('step-too-large' | 'log-full') if `step` cannot be an entry of ours."""
        if len(step) > limits.DECISION_STEP_BYTES_MAX:
            raise UsageError("step-too-large", f"{len(step)} bytes", "send large things as blobs by hash")
        if self.last_index - self.first_index >= limits.DECISION_LOG_ENTRIES_MAX:
            raise UsageError("log-full", "no checkpoint was decided for long", "see the members' alarms")

    # -- changing

    def append(self, held: Held) -> None:
        assert (held.entry.index, held.entry.previous) == (self.last_index + 1, self.last.hash), "a broken chain"
        self._log.append(held)
        self._pending[self._log_space, _key(held.entry.index)] = held.frame

    def truncate(self, first: int) -> None:
        """Drop the uncommitted entries from index `first` on."""
        assert first > self.commit, "a committed entry is never dropped"
        for index in range(first, self.last_index + 1):
            self._pending[self._log_space, _key(index)] = None
        del self._log[first - self.first_index :]

    def set_term(self, term: int, vote: bytes = b"") -> None:
        """Enter a higher term, or vote in this one. A vote of this term is never changed."""
        assert term > self.term or (term == self.term and self.vote in (b"", vote)), "one vote a term"
        self.term, self.vote = term, vote
        self._save_state()

    def forswear(self) -> None:
        """Never vote again in this incarnation."""
        self.may_vote = False
        self._save_state()

    def set_commit(self, index: int) -> None:
        assert self.commit <= index <= self.last_index, "the commit only grows, over what is held"
        self.commit = index
        self._pending[self._vote_space, _COMMIT] = _key(index)

    def compact(self, index: int, state: bytes, decided_at: int) -> None:
        """Let `state`, as of the decided entry `index`, stand for all up to it; entry `decided_at` says so."""
        assert self.first_index < index < decided_at <= self.commit, "only a decided checkpoint stands for entries"
        self._rest_on(self[index], self.certificate_of(index), self.links(index), state, decided_at)

    def install(
        self, anchor: Held, certificate: Certificate, links: tuple[RosterLink, ...], state: bytes, decided_at: int
    ) -> None:
        """The same from another member, verified. What we hold behind the anchor stays, if we hold the anchor:
        a majority may count on it (Raft paper, section 7)."""
        index = anchor.entry.index
        assert index > self.commit, "a state that is no news"
        held = self.get(index)
        if held is None or held.hash != anchor.hash:
            self.truncate(self.commit + 1)
            self.commit, kept = index, [anchor]
            self._rest_on(anchor, certificate, links, state, decided_at, kept)
        else:
            self.commit = index
            self._rest_on(held, certificate, links, state, decided_at)
        self._pending[self._vote_space, _COMMIT] = _key(index)

    def _rest_on(
        self,
        anchor: Held,
        certificate: Certificate,
        links: tuple[RosterLink, ...],
        state: bytes,
        decided_at: int,
        kept: list[Held] | None = None,
    ) -> None:
        """kept: the log from the anchor on; by default what there is of it."""
        index, old = anchor.entry.index, self.base.archived if self.base is not None else 1
        for held in self.between(self.first_index + 1, index):
            self._pending[self._log_space, _key(held.entry.index)] = None
            self._pending[self._archive_space, _key(held.entry.index)] = held.frame
        lowest = max(old, index + 1 - limits.ARCHIVE_ENTRIES_MAX)
        for gone in range(old, lowest):
            self._pending[self._archive_space, _key(gone)] = None
        self._log = kept if kept is not None else self._log[index - self.first_index :]
        self.base = Base(anchor.frame, certificate, links, blake(state), decided_at, lowest)
        self.state = state
        self._pending[self._base_space, _BASE] = codec.encode(self.base)
        self._pending[self._base_space, _STATE] = state

    def drain(self) -> list[Save]:
        """The changes since the last call, as Saves."""
        saves = [Save(space, key, value) for (space, key), value in self._pending.items()]
        self._pending.clear()
        return saves

    # -- rows

    def _save_state(self) -> None:
        state = HardState(self._incarnation, self.term, self.vote, self.may_vote)
        self._pending[self._vote_space, _STATE] = codec.encode(state)

    def _load(self, votes: dict[bytes, bytes], network: bytes, saved: Rows) -> None:
        """Our own rows, checked for damage: each entry by the next one's hash, the last by its signature."""
        state = _own(votes[_STATE], HardState)
        if state.incarnation != self._incarnation:
            raise UsageError("other-incarnation", f"the disk holds incarnation {state.incarnation} of this team")
        self.term, self.vote, self.may_vote = state.term, state.vote, state.may_vote and self.may_vote
        self._load_base(dict(saved(self._base_space)))
        for key, frame in saved(self._log_space):
            held = _own_held(frame)
            if key != _key(self.last_index + 1) or held.entry.previous != self.last.hash:
                raise _damaged(f"entry {self.last_index + 1} does not follow the one before")
            self._log.append(held)
        if _is_torn(self.last.frame, network):
            raise _damaged(f"entry {self.last_index} is not what was signed")
        self.commit = int.from_bytes(votes.get(_COMMIT, b""), "big")
        if not self.first_index <= self.commit <= self.last_index:
            raise _damaged(f"{self.commit} entries were decided, {self.first_index}..{self.last_index} are left")

    def _load_base(self, rows: dict[bytes, bytes]) -> None:
        if _BASE not in rows:
            return
        base = self.base = _own(rows[_BASE], Base)
        self.state = rows.get(_STATE, b"")
        if blake(self.state) != base.state:
            raise _damaged("the state is not what was decided")
        self._log = [_own_held(base.anchor)]


def _key(index: int) -> bytes:
    return index.to_bytes(8, "big")


def _own_held(frame: bytes) -> Held:
    return Held(_own(frame[limits.FRAME_HEADER_BYTES : -limits.SIGNATURE_BYTES], Entry), frame, blake(frame))


def _is_torn(frame: bytes, network: bytes) -> bool:
    try:
        open_entry(frame, network)
    except PeerError:
        return True
    return False


def _own(data: bytes, kind: type[T]) -> T:
    try:
        return codec.decode(data, kind)
    except PeerError as fault:
        raise _damaged(str(fault)) from None


def _damaged(what: str) -> StorageError:
    return StorageError("damaged", f"decision log: {what}", "join again as a member that lost its disk")
