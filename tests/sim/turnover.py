"""Random changes of the roster in an election's storm: nodes are let in, made voters, and put out.

    spare ── Admit ──> learner ── Promote ──> voter ── Remove ──> gone, perhaps unheard     asked of whoever leads
    begin ── storm and changes ──> 60 beats ── calm, L1 ──> all that are in the team know all

A change is asked for only where, after it, those that may lead and remember their votes are a majority: with fewer
nobody could be elected, and none of the product's rules is to blame.
"""

import random
from collections.abc import Callable
from typing import Any

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Propose
from ioa_p2p.team.role import Role
from ioa_p2p.team.standing import Standing, changed
from ioa_p2p.team.timing import BATTERY, LAN, WAN
from ioa_p2p.wire import codec
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.step import Admit, Promote, Remove, RosterStep, encode_step
from ioa_p2p.wire.team import Invite
from tests.sim.election import STORM_BEATS, Trial, begin_storm, check_recovery
from tests.sim.teams import NETWORK, TEAM, members
from tests.sim.world import World

SPARES = 3
WALL = 1_800_000_000
UNHEARD = frozenset({"not-a-voter"})  # who came in later, where its introduction was lost: it introduces itself anew


class Growing(Trial):
    """Some nodes are not in the team yet. A disk is lost only where enough others remember, whoever has a say."""

    def crash(self, node: bytes, *, lose_disk: bool = False) -> None:
        super().crash(node, lose_disk=lose_disk and self._may_forget(node))

    def _may_forget(self, node: bytes) -> bool:
        lost = self.cast.lost | {node}
        return all(can_be_led(member.electorate.standing, lost) for member in members(self.world).values())


def play(seed: int, part: Any = Election) -> World:
    """One seed. Raises Violation."""
    return live(seed, part).world


def live(seed: int, part: Any = Election, watch: Callable[[Growing], None] = lambda trial: None) -> Growing:
    """watch: is handed the trial before anything happens."""
    dice = random.Random(f"roster {seed}")
    size, timing = dice.randint(3, 7), dice.choice([LAN, LAN, LAN, LAN, WAN, BATTERY])
    lose_disks = dice.random() < 0.5
    trial = Growing(seed, part, size, None if lose_disks else dice.choice([None, size // 2 + 1]), timing, SPARES)
    watch(trial)
    trial.start()
    for host in trial.world.hosts.values():
        host.boot_rate, host.wall_offset_s = dice.uniform(0.99, 1.01), dice.uniform(-600, 600)
    trial.propose_often((0.2 * timing.beat_s, 1.2 * timing.beat_s))
    storm_s = STORM_BEATS * timing.beat_s
    begin_storm(trial, dice, storm_s, len(trial.nodes) if lose_disks else 0)
    begin_turnover(trial, dice, storm_s)
    trial.world.run(storm_s)
    check_recovery(trial, UNHEARD)
    return trial


def begin_turnover(trial: Trial, dice: random.Random, seconds: float) -> None:
    """Changes drawn until the calm; most are refused or lost, for whoever is asked may not lead any more."""
    beat_s = trial.cast.timing.beat_s
    at_s = dice.uniform(1, 8) * beat_s
    while at_s < seconds:
        trial.world.at(at_s, lambda: change(trial, dice))
        at_s += dice.uniform(0.5, 5) * beat_s


def change(trial: Trial, dice: random.Random) -> None:
    """One change, asked of everyone that believes to coordinate."""
    for node, member in members(trial.world).items():
        if member.role is Role.COORDINATOR and not trial.world.hosts[node].frozen:
            step = _draw(trial, dice, member)
            if step is not None and _leaves_leaders(trial, member, step):
                ask(trial, node, step)


def ask(trial: Trial, lead: bytes, step: RosterStep) -> None:
    """Of one that may refuse."""
    encoded = encode_step(step)
    try:
        trial.world.command(lead, Propose(encoded, blake(encoded, 16)))
    except UsageError:
        return


def admission(trial: Trial, node: bytes, *, leads: bool = True) -> Admit:
    """`node` joins, invited by the founder."""
    founder, key = trial.nodes[0], trial.cast.keys[trial.nodes.index(node)]
    both = Member(founder, "founder"), Member(node, "newcomer", may_coordinate=leads)
    terms = codec.encode(Roster(TEAM, 0, "grow", founder, both, WALL, WALL + 600))
    return Admit(terms, seal(key, NETWORK, Kind.INVITE, Invite(node, TEAM, blake(terms), WALL, WALL + 600)))


def _draw(trial: Trial, dice: random.Random, lead: Election) -> RosterStep | None:
    now = lead.electorate
    strangers = [node for node in trial.nodes if node not in now.nodes | now.gone]
    choices: list[Any] = [Remove(dice.choice(sorted(now.nodes)))]
    if strangers:
        choices.append(admission(trial, strangers[0], leads=dice.random() < 0.8))
    if now.learners:
        choices.append(Promote(dice.choice(sorted(now.learners))))
    if lead.coordinator is not None:
        choices += [Remove(lead.coordinator)] * (dice.random() < 0.3)
    return dice.choice(choices)


def _leaves_leaders(trial: Trial, lead: Election, step: RosterStep) -> bool:
    try:
        after = changed(lead.electorate.standing, step)
    except PeerError:
        return False
    return isinstance(step, Admit) or can_be_led(after, trial.cast.lost)


def can_be_led(standing: Standing, lost: set[bytes]) -> bool:
    leaders = (standing.voters & standing.candidates) - lost
    return len(leaders) > len(standing.voters) // 2
