"""The decision log of one team at one member, and what must survive a crash beside it: term, vote, commit.

    0 Found | 1 Elect(term 1, certificate) | 2 step | 3 step | 4 Elect(term 3, certificate) | ...
              each entry holds the hash of the frame before it         ^ commit: never truncated below

Changes are kept here and as Saves that `drain` hands out: space "decision/<team hex>", key index u64be, value
frame; and space "vote/<team hex>", rows "state" and "commit".
"""

from itertools import accumulate
from typing import NamedTuple, TypeVar

from ioa_p2p.crypto.envelope import open_frame, seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Rows, Save
from ioa_p2p.errors import PeerError, StorageError, UsageError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.decision import Certificate, Entry
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake

T = TypeVar("T")

NO_HASH = bytes(32)
_STATE, _COMMIT = b"state", b"commit"


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


def spaces(team: bytes) -> tuple[str, str]:
    """Where a team's entries are saved, and its term, vote and commit."""
    return f"decision/{team.hex()}", f"vote/{team.hex()}"


def next_entry(log: "Decisions", key: NodeKey, network: bytes, at: int, step: bytes, certificate: Certificate) -> Held:
    """The entry that the coordinator of the log's term signs next. at: wall seconds."""
    founding, index = log[0].entry, log.last_index + 1
    entry = Entry(key.node, founding.team, founding.incarnation, log.term, index, log.last.hash, at, certificate, step)
    frame = seal(key, network, Kind.DECISION, entry)
    return Held(entry, frame, blake(frame))


class Decisions:
    """Made from what was saved; a first start saves its state at once, so that the next one is known as such."""

    def __init__(self, founding: Held, network: bytes, saved: Rows, *, may_vote: bool = True) -> None:
        """founding: entry 0, checked. Raises UsageError('other-incarnation'), StorageError('damaged')."""
        self._log_space, self._vote_space = spaces(founding.entry.team)
        self._incarnation = founding.entry.incarnation
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
    def last_index(self) -> int:
        return len(self._log) - 1

    @property
    def last(self) -> Held:
        return self._log[-1]

    @property
    def end(self) -> tuple[int, int]:
        """(last term, last index): the greater, the more up to date (Raft section 5.4.1)."""
        return self.last.entry.term, self.last_index

    def __getitem__(self, index: int) -> Held:
        return self._log[index]

    def get(self, index: int) -> Held | None:
        return self._log[index] if 0 <= index <= self.last_index else None

    def between(self, first: int, last: int) -> list[Held]:
        """Entries first..last, both included, as far as there are any."""
        return self._log[first : last + 1]

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
        if self.last_index >= limits.DECISION_LOG_ENTRIES_MAX:
            raise UsageError("log-full", "this team decided all it can", "form a new team")

    # -- changing

    def append(self, held: Held) -> None:
        assert (held.entry.index, held.entry.previous) == (len(self._log), self.last.hash), "a broken chain"
        self._log.append(held)
        self._pending[self._log_space, _key(held.entry.index)] = held.frame

    def truncate(self, first: int) -> None:
        """Drop the uncommitted entries from index `first` on."""
        assert first > self.commit, "a committed entry is never dropped"
        for index in range(first, len(self._log)):
            self._pending[self._log_space, _key(index)] = None
        del self._log[first:]

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
        for key, frame in saved(self._log_space):
            held = Held(_own(frame[limits.FRAME_HEADER_BYTES : -limits.SIGNATURE_BYTES], Entry), frame, blake(frame))
            if key != _key(len(self._log)) or held.entry.previous != self.last.hash:
                raise _damaged(f"entry {len(self._log)} does not follow the one before")
            self._log.append(held)
        if _is_torn(self.last.frame, network):
            raise _damaged(f"entry {self.last_index} is not what was signed")
        self.commit = int.from_bytes(votes.get(_COMMIT, b""), "big")
        if self.commit > self.last_index:
            raise _damaged(f"{self.commit} entries were decided, {self.last_index} are left")


def _key(index: int) -> bytes:
    return index.to_bytes(8, "big")


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
