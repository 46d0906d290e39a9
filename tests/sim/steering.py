"""Words for directed worlds of an election: who reaches whom, who is elected, and that all ends well."""

from collections.abc import Sequence
from typing import Any

from ioa_p2p.team.election_events import StepDown
from ioa_p2p.team.role import Role
from tests.sim.election import Trial
from tests.sim.scenario import Violation
from tests.sim.teams import coordinator, members
from tests.sim.world import World


def settled(part: Any, size: int = 5) -> Trial:
    """All are connected, one of them coordinates, and all know its first decision."""
    trial = Trial(7, part, size)
    trial.start()
    expect(trial.world.run(5, until=lambda: trial.decided() > 0), "a first coordinator")
    trial.world.run(1)
    return trial


def elect(trial: Trial, node: bytes, voters: Sequence[bytes]) -> None:
    """Let only `node` reach a majority, until it coordinates; where that is not enough, others hand over to it."""
    star(trial, node, voters)
    for _ in range(8):
        if trial.world.run(1, until=lambda: members(trial.world)[node].role is Role.COORDINATOR):
            return
        for other in without([*members(trial.world)], node):
            trial.world.command(other, StepDown())
    raise Violation("L1", "no new coordinator")


def star(trial: Trial, centre: bytes, others: Sequence[bytes]) -> None:
    """Only `centre` and each of `others` hear each other."""
    trial.world.mend()
    for source in trial.nodes:
        for target in trial.nodes:
            if not (source == centre and target in others) and not (target == centre and source in others):
                trial.world.cut(source, target)


def end(trial: Trial) -> World:
    """All is well again, and the team decides: I1-I5 and I8 were watched all along."""
    trial.calm()
    trial.world.run(6, until=lambda: coordinator(trial.world) is not None)
    trial.world.run(1)
    before, lead = trial.decided(), leading(trial)
    trial.propose(lead)
    expect(trial.world.run(6, until=lambda: trial.decided() > before), "a commit after the calm")
    trial.world.run(1)
    return trial.world


def leading(trial: Trial) -> bytes:
    lead = coordinator(trial.world)
    expect(lead is not None and lead.coordinator is not None, "a coordinator")
    assert lead is not None
    assert lead.coordinator is not None
    return lead.coordinator


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Violation("L1", f"no {what}")


def without(nodes: list[bytes], node: bytes) -> list[bytes]:
    return [other for other in nodes if other != node]
