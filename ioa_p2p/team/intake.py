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
from ioa_p2p.team.electorates import Electorates
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


def check_log(electorate: Electorate, me: bytes, peer: bytes, message: DecisionMessage) -> None:
    """Raises PeerError('wrong-team' | 'not-a-voter' | 'old-incarnation')."""
    if message.team != electorate.team:
        raise PeerError("wrong-team")
    if peer == me:
        raise PeerError("not-a-voter")
    if message.incarnation < electorate.incarnation:
        raise PeerError("old-incarnation")


def has_a_say(possible: Sequence[Electorate], peer: bytes, message: DecisionMessage) -> bool:
    """May `peer` say this, as far as we know who is in the team? A coordinator proves itself, so it may be anybody.

    possible: `Electorates.possible`; one whose removal may still be truncated is in the team. False: it was removed,
    and perhaps does not know. Raises PeerError('not-a-voter') for a stranger.
    """
    if isinstance(message, Append) and (message.certificate or message.entries):
        return True
    if any(peer in one.nodes for one in possible):
        return True
    if peer in possible[-1].gone:
        return False
    raise PeerError("not-a-voter")


def saved_mandate(log: Decisions) -> Mandate:
    """After a restart: the log's last term may be the current one, and its first entry has the certificate."""
    entry = log.last.entry
    certificate = log.certificate_of(log.last_index)
    return Mandate(entry.term, entry.node, certificate) if certificate else NO_MANDATE


def check_append(log: Decisions, electorates: Electorates, known: Mandate, peer: bytes, message: Append) -> Intake:
    """known: the last mandate seen. Raises PeerError: 'second-coordinator', 'wrong-signer', and what
    `fresh_entries` and `Electorates.check_mandate` raise."""
    if message.term < log.term:
        return Intake()
    matches = log.matches(message.previous_index, message.previous_term)
    fresh = fresh_entries(log, electorates, message) if matches else []
    for held in fresh:
        if held.entry.term > message.term or (held.entry.term == message.term and held.entry.node != peer):
            raise PeerError("wrong-signer", "an entry that its sender may not pass on")
    if fresh:
        electorates = electorates.until(fresh[0].entry.index - 1).after_all(fresh)
    mandate = _mandate(log, electorates, known, peer, message)
    if mandate is None and not _proves_itself(log, fresh):
        return Intake(None, matches)
    return Intake(mandate, matches, fresh)


def _mandate(log: Decisions, electorates: Electorates, known: Mandate, peer: bytes, message: Append) -> Mandate | None:
    """One coordinator a term; a new one brings its certificate."""
    if message.term == known.term:
        if peer != known.coordinator:
            raise PeerError("second-coordinator", f"term {message.term} has another")
        return known
    if not message.certificate:
        return None
    try:
        electorates.check_mandate(message.certificate, message.term, peer, log.commit)
    except PeerError as fault:
        if fault.code != "unknown-roster":
            raise
        return None
    return Mandate(message.term, peer, message.certificate)


def _proves_itself(log: Decisions, fresh: Sequence[Held]) -> bool:
    """May entries be kept from one that is not known to coordinate? They are signed and chained to ours; kept they
    must make our log more up to date than it was, so that nothing is dropped that a majority may count on."""
    if not fresh:
        return False
    return fresh[0].entry.index > log.last_index or fresh[-1].entry.term > log.last.entry.term


def fresh_entries(log: Decisions, electorates: Electorates, message: Append) -> list[Held]:
    """Those of its entries that the log does not hold, from the first that differs; verified.

    The log holds the entry that they follow. Raises PeerError: 'batch-too-large', 'wrong-entry', 'wrong-signer',
    'forked-log', 'conflicts-committed', and what frames, certificates and roster changes raise.
    """
    if sum(map(len, message.entries)) > limits.APPEND_BYTES_MAX:
        raise PeerError("batch-too-large", f"over {limits.APPEND_BYTES_MAX} bytes of entries")
    return fresh_after(log, electorates, message.previous_index, message.entries)


def fresh_after(log: Decisions, electorates: Electorates, index: int, frames: Sequence[bytes]) -> list[Held]:
    """The same of `frames` that follow entry `index`, however many they are."""
    previous, fresh = log[index], list[Held]()
    for frame in frames:
        known = None if fresh else log.get(previous.entry.index + 1)
        if known is not None and known.frame == frame:
            previous = known
            continue
        if not fresh:
            electorates = electorates.until(previous.entry.index)
        previous = follow(electorates.latest, previous, frame)
        electorates = electorates.after(previous)
        fresh.append(previous)
    if fresh:
        _check_replaces(log, fresh[0].entry)
    return fresh


def follow(electorate: Electorate, previous: Held, frame: bytes) -> Held:
    """The entry in `frame`, if it may stand right after `previous`. electorate: in force there. Raises PeerError as
    above."""
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
