"""A message, checked in full before any of it counts: who sends it; of an Append each entry after the one before.

    certificate ──> mandate: whose term it is
    held entry ── index + 1, hash, term, signer ──> next entry ──> ...      a new term brings its certificate

Pure functions over a log that they do not change: a peer's fault leaves no trace.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Decisions, Held, open_entry
from ioa_p2p.team.electorate import Electorate
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import Append, DecisionMessage, Entry
from ioa_p2p.wire.ids import blake


class Mandate(NamedTuple):
    """Whose term it is, and the votes that say so."""

    term: int
    coordinator: bytes
    certificate: tuple[bytes, ...]


NO_MANDATE = Mandate(0, b"", ())


class Intake(NamedTuple):
    """What an Append may change. mandate: None if its sender has not proven that the term is its own; fresh: the
    entries that the log does not hold yet; matches: the log holds the entry that they follow."""

    mandate: Mandate | None = None
    matches: bool = False
    fresh: Sequence[Held] = ()


def check_sender(electorate: Electorate, me: bytes, peer: bytes, message: DecisionMessage) -> None:
    """Raises PeerError('wrong-team' | 'not-a-voter' | 'old-incarnation')."""
    if message.team != electorate.team:
        raise PeerError("wrong-team")
    if peer not in electorate.voters or peer == me:
        raise PeerError("not-a-voter")
    if message.incarnation < electorate.incarnation:
        raise PeerError("old-incarnation")


def saved_mandate(log: Decisions) -> Mandate:
    """After a restart: the log's last term may be the current one, and its first entry has the certificate."""
    term = log.last.entry.term
    for index in range(log.last_index, 0, -1):
        entry = log[index].entry
        if entry.term == term and entry.certificate:
            return Mandate(term, entry.node, entry.certificate)
    return NO_MANDATE


def check_append(log: Decisions, electorate: Electorate, known: Mandate, peer: bytes, message: Append) -> Intake:
    """known: the last mandate seen. Raises PeerError: 'second-coordinator', 'wrong-signer', and what
    `fresh_entries` and `Electorate.check_certificate` raise."""
    if message.term < log.term:
        return Intake()
    mandate = _mandate(electorate, known, peer, message)
    matches = log.matches(message.previous_index, message.previous_term)
    if mandate is None or not matches:
        return Intake(mandate, matches)
    fresh = fresh_entries(log, electorate, log[message.previous_index], message.entries)
    for held in fresh:
        if held.entry.term > message.term or (held.entry.term == message.term and held.entry.node != peer):
            raise PeerError("wrong-signer", "an entry that its sender may not pass on")
    return Intake(mandate, matches, fresh)


def _mandate(electorate: Electorate, known: Mandate, peer: bytes, message: Append) -> Mandate | None:
    """One coordinator a term; a new one brings its certificate."""
    if message.term == known.term:
        if peer != known.coordinator:
            raise PeerError("second-coordinator", f"term {message.term} has another")
        return known
    if not message.certificate:
        return None
    electorate.check_certificate(message.certificate, message.term, peer)
    return Mandate(message.term, peer, message.certificate)


def fresh_entries(log: Decisions, electorate: Electorate, previous: Held, frames: Sequence[bytes]) -> list[Held]:
    """Those of `frames` that the log does not hold, from the first that differs; verified.

    previous: the log's entry that the batch follows. Raises PeerError: 'batch-too-large', 'wrong-entry',
    'wrong-signer', 'forked-log', 'conflicts-committed', and what frames and certificates raise.
    """
    if sum(map(len, frames)) > limits.APPEND_BYTES_MAX:
        raise PeerError("batch-too-large", f"over {limits.APPEND_BYTES_MAX} bytes of entries")
    fresh: list[Held] = []
    for frame in frames:
        known = None if fresh else log.get(previous.entry.index + 1)
        if known is not None and known.frame == frame:
            previous = known
            continue
        previous = follow(electorate, previous, frame)
        fresh.append(previous)
    if fresh:
        _check_replaces(log, fresh[0].entry)
    return fresh


def follow(electorate: Electorate, previous: Held, frame: bytes) -> Held:
    """The entry in `frame`, if it may stand right after `previous`. Raises PeerError as above."""
    entry = open_entry(frame, electorate.network)
    before = previous.entry
    if (entry.team, entry.incarnation) != (electorate.team, electorate.incarnation):
        raise PeerError("wrong-entry", "an entry of another log")
    if (entry.index, entry.previous) != (before.index + 1, previous.hash) or entry.term < max(before.term, 1):
        raise PeerError("wrong-entry", f"entry {entry.index} does not follow entry {before.index}")
    if entry.term == before.term:
        _check_same_term(before, entry)
    else:
        _check_first_of_term(electorate, before, entry)
    return Held(entry, frame, blake(frame))


def _check_same_term(before: Entry, entry: Entry) -> None:
    if entry.node != before.node:
        raise PeerError("wrong-signer", f"term {entry.term} has another coordinator")
    if entry.certificate:
        raise PeerError("wrong-entry", "only a term's first entry carries a certificate")


def _check_first_of_term(electorate: Electorate, before: Entry, entry: Entry) -> None:
    """Its coordinator was elected over exactly the log that the entry follows."""
    ballot = electorate.check_certificate(entry.certificate, entry.term, entry.node)
    if (ballot.last_index, ballot.last_term) != (before.index, before.term) or entry.step:
        raise PeerError("wrong-entry", "a term begins with an empty step, after the log that was voted on")


def _check_replaces(log: Decisions, entry: Entry) -> None:
    """What the log holds in that place may go only if it is undecided and of another term."""
    held = log.get(entry.index)
    if held is None:
        return
    if held.entry.term == entry.term:
        raise PeerError("forked-log", f"two entries {entry.index} in term {entry.term}")
    if entry.index <= log.commit:
        raise PeerError("conflicts-committed", f"entry {entry.index} is decided and stays")
