"""The invariants (docs/invariants.md) as small checkers: each listens to what it needs, raises `Violation`.

Made with the world; they see machines, disks, mail and events, never more than an outside observer could. The
hosts are elections alone, or whole nodes with one team.
"""

from collections import defaultdict
from itertools import pairwise
from typing import Any

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.team import events
from ioa_p2p.team.decisions import Base, HardState, held_of, spaces
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Committed, Elected, Restored
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import Timing
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.decision import Ack, Append, Vote, VoteReply, VoteRequest
from ioa_p2p.wire.frames import Kind
from tests.sim.scenario import Violation
from tests.sim.teams import NETWORK, member_at, touched
from tests.sim.world import Host, World

Node = Any


class OneCoordinator:
    """I1: at most one coordinator per (incarnation, term)."""

    def __init__(self, world: World) -> None:
        self._coordinators: dict[tuple[int, int], Node] = {}
        world.watch.append(self.watch)

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            if member.role is Role.COORDINATOR and self._coordinators.setdefault(member.fence, node) != node:
                raise Violation("I1", f"two coordinators in {member.fence}")


class DecidedStays:
    """I2: what any disk calls decided never differs or vanishes; so whoever is elected holds all of it."""

    def __init__(self, world: World) -> None:
        self._decided: dict[int, bytes] = {}
        self._seen: dict[Node, tuple[int, int]] = {}
        world.on_event.append(self.event)
        world.watch.append(self.watch)

    def event(self, world: World, node: Node, event: Any) -> None:
        if isinstance(event, Committed):
            self._decide(event.index, event.frame)
        elif isinstance(event, Elected | events.Elected) and event.coordinator == node:
            member = member_at(world, node)
            for index, frame in self._decided.items() if member else ():
                _check_holds(member, index, frame, "the new coordinator")

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            host, team = world.hosts[node], member.electorate.team
            disks, seen = self._seen.get(node, (-1, 0))
            commit = saved_commit(host, team)
            if disks == host.disks and commit < seen:
                raise Violation("I2", f"entry {seen} is decided no more")
            for index in range(seen + 1 if disks == host.disks else 1, commit + 1):
                if frame := saved_entry(host, team, index):
                    self._decide(index, frame)
            if frame := self._decided.get(member.commit_index):
                _check_holds(member, member.commit_index, frame, "a member")
            self._seen[node] = host.disks, commit

    def _decide(self, index: int, frame: bytes) -> None:
        if self._decided.setdefault(index, frame) != frame:
            raise Violation("I2", f"two decisions {index}")


class LogsMatch:
    """I3: entries of one index and term are the same, and so is all before them (the chain of hashes)."""

    def __init__(self, world: World) -> None:
        self._entries: dict[tuple[int, int, int], bytes] = {}
        self._walked: dict[Node, list[bytes]] = defaultdict(list)
        world.watch.append(self.watch)

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            walked = self._walked[node]
            del walked[member.last_index + 1 :]
            index = member.last_index
            while self._is_new(member, walked, index):
                index -= 1
            walked += [b""] * (index + 1 - len(walked))  # what a snapshot stands for
            walked[index + 1 :] = [_hash_at(member, at) for at in range(index + 1, member.last_index + 1)]

    def _is_new(self, member: Election, walked: list[bytes], index: int) -> bool:
        held = member.entry_at(index)
        if held is None:
            return False
        if index < len(walked) and walked[index] == held.hash:
            return False
        place = held.entry.incarnation, held.entry.term, index
        if self._entries.setdefault(place, held.hash) != held.hash:
            raise Violation("I3", f"two entries {index} in term {held.entry.term}")
        before = member.entry_at(index - 1)
        if before is not None and held.entry.previous != before.hash:
            raise Violation("I3", f"entry {index} does not hold the hash of the one before")
        return True


class CommitGrows:
    """I4: what a member told as decided it still calls so, while it keeps its disk; each is told once, in order."""

    def __init__(self, world: World) -> None:
        self._commit: dict[Node, tuple[int, int]] = {}
        self._told: dict[Node, tuple[int, int]] = {}
        world.watch.append(self.watch)
        world.on_event.append(self.event)

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            host = world.hosts[node]
            disks, commit = self._commit.get(node, (0, 0))
            if disks == host.disks and member.commit_index < commit:
                raise Violation("I4", f"commit went from {commit} to {member.commit_index}")
            self._commit[node] = host.disks, saved_commit(host, member.electorate.team)

    def event(self, world: World, node: Node, event: Any) -> None:
        if isinstance(event, Restored):
            self._told[node] = world.hosts[node].life, event.index
        if not isinstance(event, Committed):
            return
        life, index = self._told.get(node, (0, 0))
        expected = index + 1 if life == world.hosts[node].life else 1
        if event.index != expected:
            raise Violation("I4", f"commit {event.index} told where {expected} belongs")
        self._told[node] = world.hosts[node].life, event.index


class OneChangeAtATime:
    """I9: a coordinator changes the roster by one voter, once the change before is decided, and an entry of its term;
    and who votes is what the last change in a log says, for as long as it is there."""

    def __init__(self, world: World) -> None:
        self._seen: dict[Node, tuple[int, bool]] = {}
        world.watch.append(self.watch)

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            changes = len(member.electorates.all)
            before, free = self._seen.get(node, (changes, True))
            if changes > before and member.role is Role.COORDINATOR and not (free and changes == before + 1):
                raise Violation("I9", "a change of the roster that may not be yet")
            self._check_in_force(member)
            self._seen[node] = changes, _may_change(member)

    def _check_in_force(self, member: Election) -> None:
        index, held = member.electorate.roster_index, member.entry_at(member.electorate.roster_index)
        if index >= member.first_index and (held is None or held.hash != member.electorate.roster_hash):
            raise Violation("I9", f"votes as of entry {index}, which the log does not hold")
        sizes = [len(one.voters) for one in member.electorates.all]
        if any(abs(size - after) > 1 for size, after in pairwise(sizes)):
            raise Violation("I9", f"electorates of {sizes}")


class VotesLast:
    """I5: a vote is durable before it leaves, and no voter ever signs two in a term; the same for an ack."""

    def __init__(self, world: World) -> None:
        self._votes: dict[tuple[Node, int], Node] = {}
        world.on_send.append(self.send)

    def send(self, world: World, source: Node, target: Node, message: Any) -> None:
        match message:
            case VoteRequest():
                self._check_vote(world, message.team, source, message.term, source)
            case VoteReply() if message.vote:
                vote = codec.decode(frames.parse(message.vote).body, Vote)
                self._check_vote(world, message.team, source, vote.term, vote.candidate)
            case Ack(ok=True):
                _check_saved_entry(world, source, message)
            case _:
                pass

    def _check_vote(self, world: World, team: bytes, voter: Node, term: int, candidate: Node) -> None:
        if self._votes.setdefault((voter, term), candidate) != candidate:
            raise Violation("I5", f"a second vote in term {term}")
        row = world.hosts[voter].disk.get(spaces(team)[1], b"state")
        state = codec.decode(row, HardState) if row else None
        if state is None or state.term < term or (state.term == term and state.vote != candidate):
            raise Violation("I5", f"a vote of term {term} leaves before it is saved")


class LeaseHolds:
    """I8: a coordinator neither speaks nor decides unless it heard a majority within the lease."""

    def __init__(self, world: World, timing: Timing) -> None:
        self._timing = timing
        self._heard: dict[Node, dict[Node, float]] = defaultdict(dict)
        self._commit: dict[Node, int] = {}
        world.on_deliver.append(self.deliver)
        world.on_send.append(self.send)
        world.watch.append(self.watch)

    def deliver(self, world: World, source: Node, target: Node, message: Any) -> None:
        self._heard[target][source] = world.time_s

    def send(self, world: World, source: Node, target: Node, message: Any) -> None:
        if isinstance(message, Append) and (member := member_at(world, source)):
            self._check(world, world.made_s, source, member, "speaks")

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            if self._commit.get(node) != member.commit_index and member.role is Role.COORDINATOR:
                self._check(world, world.time_s, node, member, f"decides {member.commit_index}")
            self._commit[node] = member.commit_index

    def _check(self, world: World, at_s: float, node: Node, member: Election, does: str) -> None:
        """By the voters in force, or by those of before a change that it may only just have appended."""
        since = at_s - self._timing.lease_s / world.hosts[node].boot_rate - 0.001
        near = {source for source, at in self._heard[node].items() if at >= since} | {node}
        if not any(len(near & one.voters) >= one.majority for one in member.electorates.all[-2:]):
            raise Violation("I8", f"a coordinator {does} and heard {len(near) - 1} nodes in its lease")


class Certified:
    """Whom a member follows was elected: a majority of distinct voters signed for it (checked here anew)."""

    def __init__(self, world: World) -> None:
        world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        member = member_at(world, node) if isinstance(event, Elected | events.Elected) else None
        if member is None or member.term != event.term:
            return
        votes = [open_frame(frames.parse(frame), NETWORK, Kind.VOTE, Vote) for frame in member.certificate]
        voters = {vote.node for vote in votes if (vote.term, vote.candidate) == (event.term, event.coordinator)}
        named = {(vote.roster_index, vote.roster_hash) for vote in votes}
        known = [one for one in member.electorates.all if {(one.roster_index, one.roster_hash)} == named]
        if not any(len(voters & one.voters) >= one.majority for one in known):
            raise Violation("I1", f"term {event.term} is followed on {len(voters)} votes")


def watch_election(world: World, timing: Timing) -> None:
    """All that must hold for an election and its log."""
    for checker in (OneCoordinator, DecidedStays, LogsMatch, CommitGrows, OneChangeAtATime, VotesLast, Certified):
        checker(world)
    LeaseHolds(world, timing)


# -- reading disks


def saved_commit(host: Host, team: bytes) -> int:
    """Up to where a disk says that entries are decided."""
    return int.from_bytes(host.disk.get(spaces(team)[1], b"commit") or b"", "big")


def saved_entry(host: Host, team: bytes, index: int) -> bytes | None:
    """From the log, the archive, or what the log rests on."""
    log, _, base, archive = spaces(team)
    key = index.to_bytes(8, "big")
    row = host.disk.get(log, key) or host.disk.get(archive, key)
    if row is None and (rests := host.disk.get(base, b"base")):
        anchor = codec.decode(rests, Base).anchor
        return anchor if held_of(anchor).entry.index == index else None
    return row


def _may_change(member: Election) -> bool:
    """As its log is: an entry of its term is decided, and so is the last change."""
    held = member.entry_at(member.commit_index)
    own = held is not None and held.entry.term == member.term
    return own and member.electorate.roster_index <= member.commit_index


def _hash_at(member: Election, index: int) -> bytes:
    held = member.entry_at(index)
    return held.hash if held else b""


def _check_holds(member: Any, index: int, frame: bytes, who: str) -> None:
    held = member.entry_at(index)
    if index >= member.first_index and (held is None or held.frame != frame):  # what is before is in the state
        raise Violation("I2", f"{who} lacks decision {index}")


def _check_saved_entry(world: World, node: Node, ack: Ack) -> None:
    host, member = world.hosts[node], member_at(world, node)
    row, held = saved_entry(host, ack.team, ack.index), member.entry_at(ack.index) if member else None
    if ack.index and (row is None or (held is not None and not host.unsynced and row != held.frame)):
        raise Violation("I5", f"entry {ack.index} is acknowledged before it is saved")
