"""A team for tests: keys, founding entry, and its elections as machines or as hosts of a `World`."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now, Rows
from ioa_p2p.team.decisions import founding_frame
from ioa_p2p.team.election import Election
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.role import Role
from ioa_p2p.team.timing import LAN, Timing
from ioa_p2p.wire.ids import network_id
from tests.sim.duo import Duo
from tests.sim.world import World

NETWORK = network_id("test")
TEAM = b"test team 16 B.."


@dataclass
class Cast:
    """`size` voters; the first founds the team. leads: how many of them may coordinate (None: all). spares: nodes
    that run, and may be let in later.

    election: the class to make members of; a mutant goes here.
    """

    size: int
    leads: int | None = None
    timing: Timing = LAN
    election: Callable[..., Election] = Election
    spares: int = 0
    rank: dict[bytes, float] = field(default_factory=dict)
    lost: set[bytes] = field(default_factory=set)

    @cached_property
    def keys(self) -> list[NodeKey]:
        return [NodeKey(bytes([number]) * 32) for number in range(1, self.size + self.spares + 1)]

    @cached_property
    def nodes(self) -> list[bytes]:
        return [key.node for key in self.keys]

    @cached_property
    def founding(self) -> bytes:
        return founding_frame(self.keys[0], NETWORK, TEAM, 0, 1_800_000_000, b"roster")

    def make(self, node: bytes, saved: Rows, rng: random.Random, now: Now) -> Election:
        """A `World` makes its hosts by this; members in `lost` know that they lost their disk."""
        key = self.keys[self.nodes.index(node)]
        founders = self.nodes[: self.size]
        voters, candidates = frozenset(founders), frozenset(founders[: self.leads])
        rank = self.rank.get(node, 0.5)
        return self.election(
            key,
            NETWORK,
            TEAM,
            0,
            voters,
            candidates,
            rank,
            self.timing,
            rng,
            self.founding,
            saved,
            lost_disk=node in self.lost,
        )


def members(world: World) -> dict[bytes, Election]:
    """The elections that run now, by node."""
    return {node: member for node in world.hosts if (member := member_at(world, node))}


def touched(world: World) -> dict[bytes, Election]:
    """Those that did something in the last happening."""
    return {node: member for node in world.touched if (member := member_at(world, node))}


def member_at(world: World, node: Any) -> Election | None:
    """Of a host that is an election, or a node with one team. None while it is crashed, or in no team yet."""
    machine = world.hosts[node].machine
    if isinstance(machine, Duo):
        return machine.election
    if isinstance(machine, Teams):
        return next((team.election for team in machine.teams.values()), None)
    return machine if isinstance(machine, Election) else None


def coordinator(world: World) -> Election | None:
    """The coordinator of the highest term that has one."""
    found = [member for member in members(world).values() if member.role is Role.COORDINATOR]
    return max(found, key=lambda member: member.term, default=None)
