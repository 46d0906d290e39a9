"""The invariants (docs/invariants.md) as small checkers: each listens to what it needs, raises `Violation`.

Made with the world; they see machines, disks, mail and events, never more than an outside observer could.
"""

from collections import defaultdict
from typing import Any

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.team.decisions import HardState
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Committed, Elected
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import Timing
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.decision import Ack, Append, Vote, VoteReply, VoteRequest
from ioa_p2p.wire.frames import Kind
from tests.sim.scenario import Violation
from tests.sim.teams import NETWORK, TEAM, member_at, touched
from tests.sim.world import World

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
    """I2: committed entries never differ or vanish; so whoever is elected holds all of them."""

    def __init__(self, world: World) -> None:
        self._decided: dict[int, bytes] = {}
        self._seen: dict[Node, tuple[int, int]] = {}
        world.on_event.append(self.event)
        world.watch.append(self.watch)

    def event(self, world: World, node: Node, event: Any) -> None:
        if isinstance(event, Committed):
            if self._decided.setdefault(event.index, event.frame) != event.frame:
                raise Violation("I2", f"two decisions {event.index}")
        elif isinstance(event, Elected) and event.coordinator == node and (member := member_at(world, node)):
            for index, frame in self._decided.items():
                _check_holds(member, index, frame, "the new coordinator")

    def watch(self, world: World) -> None:
        """What a member holds as committed is what was decided; the hash chain vouches for all before."""
        for node, member in touched(world).items():
            seen = member.last_index, member.commit_index
            if self._seen.get(node) != seen:
                self._seen[node] = seen
                if frame := self._decided.get(member.commit_index):
                    _check_holds(member, member.commit_index, frame, "a member")


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
            while index >= 0 and self._is_new(member, walked, index):
                index -= 1
            walked[index + 1 :] = [_held(member, at).hash for at in range(index + 1, member.last_index + 1)]

    def _is_new(self, member: Election, walked: list[bytes], index: int) -> bool:
        held = _held(member, index)
        if index < len(walked) and walked[index] == held.hash:
            return False
        place = held.entry.incarnation, held.entry.term, index
        if self._entries.setdefault(place, held.hash) != held.hash:
            raise Violation("I3", f"two entries {index} in term {held.entry.term}")
        if index and held.entry.previous != _held(member, index - 1).hash:
            raise Violation("I3", f"entry {index} does not hold the hash of the one before")
        return True


class CommitGrows:
    """I4: a member's commit never goes back while it keeps its disk, and is told once each, in order."""

    def __init__(self, world: World) -> None:
        self._commit: dict[Node, tuple[Any, int]] = {}
        self._told: dict[Node, tuple[int, int]] = {}
        world.watch.append(self.watch)
        world.on_event.append(self.event)

    def watch(self, world: World) -> None:
        for node, member in touched(world).items():
            disk, commit = self._commit.get(node, (None, 0))
            if disk is world.hosts[node].disk and member.commit_index < commit:
                raise Violation("I4", f"commit went from {commit} to {member.commit_index}")
            self._commit[node] = world.hosts[node].disk, member.commit_index

    def event(self, world: World, node: Node, event: Any) -> None:
        if not isinstance(event, Committed):
            return
        life, index = self._told.get(node, (0, 0))
        expected = index + 1 if life == world.hosts[node].life else 1
        if event.index != expected:
            raise Violation("I4", f"commit {event.index} told where {expected} belongs")
        self._told[node] = world.hosts[node].life, event.index


class VotesLast:
    """I5: a vote is durable before it leaves, and no voter ever signs two in a term; the same for an ack."""

    def __init__(self, world: World) -> None:
        self._votes: dict[tuple[Node, int], Node] = {}
        world.on_send.append(self.send)

    def send(self, world: World, source: Node, target: Node, message: Any) -> None:
        match message:
            case VoteRequest():
                self._check_vote(world, source, message.term, source)
            case VoteReply() if message.vote:
                vote = codec.decode(frames.parse(message.vote).body, Vote)
                self._check_vote(world, source, vote.term, vote.candidate)
            case Ack(ok=True):
                _check_saved_entry(world, source, message.index)
            case _:
                pass

    def _check_vote(self, world: World, voter: Node, term: int, candidate: Node) -> None:
        if self._votes.setdefault((voter, term), candidate) != candidate:
            raise Violation("I5", f"a second vote in term {term}")
        row = world.hosts[voter].disk.get(f"vote/{TEAM.hex()}", b"state")
        state = codec.decode(row, HardState) if row else None
        if state is None or state.term < term or (state.term == term and state.vote != candidate):
            raise Violation("I5", f"a vote of term {term} leaves before it is saved")


class LeaseHolds:
    """I8: a coordinator neither speaks nor decides unless it heard a majority within the lease."""

    def __init__(self, world: World, timing: Timing) -> None:
        self._timing = timing
        self._heard: dict[tuple[Node, Node], float] = {}
        world.on_deliver.append(self.deliver)
        world.on_send.append(self.send)
        world.on_event.append(self.event)

    def deliver(self, world: World, source: Node, target: Node, message: Any) -> None:
        self._heard[target, source] = world.time_s

    def send(self, world: World, source: Node, target: Node, message: Any) -> None:
        if isinstance(message, Append):
            self._check(world, source, "speaks")

    def event(self, world: World, node: Node, event: Any) -> None:
        member = member_at(world, node)
        if isinstance(event, Committed) and member is not None and member.role is Role.COORDINATOR:
            self._check(world, node, f"decides {event.index}")

    def _check(self, world: World, node: Node, does: str) -> None:
        since = world.time_s - self._timing.lease_s / world.hosts[node].boot_rate - 0.001
        heard = sum(at >= since for (target, _), at in self._heard.items() if target == node)
        if heard + 1 < len(world.hosts) // 2 + 1:
            raise Violation("I8", f"a coordinator {does} and heard {heard} of {len(world.hosts) - 1} in its lease")


class Certified:
    """Whom a member follows was elected: a majority of distinct voters signed for it (checked here anew)."""

    def __init__(self, world: World) -> None:
        world.on_event.append(self.event)

    def event(self, world: World, node: Node, event: Any) -> None:
        member = member_at(world, node)
        if not isinstance(event, Elected) or member is None or member.term != event.term:
            return
        votes = [open_frame(frames.parse(frame), NETWORK, Kind.VOTE, Vote) for frame in member.certificate]
        voters = {vote.node for vote in votes if (vote.term, vote.candidate) == (event.term, event.coordinator)}
        if len(voters & set(world.hosts)) < len(world.hosts) // 2 + 1:
            raise Violation("I1", f"term {event.term} is followed on {len(voters)} votes")


def watch_election(world: World, timing: Timing) -> None:
    """All that must hold for an election and its log."""
    for checker in (OneCoordinator, DecidedStays, LogsMatch, CommitGrows, VotesLast, Certified):
        checker(world)
    LeaseHolds(world, timing)


def _held(member: Election, index: int) -> Any:
    held = member.entry_at(index)
    assert held is not None
    return held


def _check_holds(member: Election, index: int, frame: bytes, who: str) -> None:
    held = member.entry_at(index)
    if held is None or held.frame != frame:
        raise Violation("I2", f"{who} lacks decision {index}")


def _check_saved_entry(world: World, node: Node, index: int) -> None:
    member = member_at(world, node)
    assert member is not None
    row = world.hosts[node].disk.get(f"decision/{TEAM.hex()}", index.to_bytes(8, "big"))
    if index and (row is None or row != _held(member, index).frame):
        raise Violation("I5", f"entry {index} is acknowledged before it is saved")
