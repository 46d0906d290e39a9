"""Histories of a decision log under faults are linearizable: clients propose and read, whoever coordinates answers.

propose ──> ok at the decision; refused: fail; the coordinator dies or is deposed first: unknown
read    ──> what a coordinator knows as decided, while a majority answered it within its lease
"""

import random
from typing import Any

from ioa_p2p.team.election import Election, Role
from ioa_p2p.team.election_events import Committed
from tests.linear import Recorder, linearizable
from tests.sim.election import Trial, begin_storm
from tests.sim.teams import members
from tests.sim.world import World

BARS = {"histories_refused": "== 0", "history_operations": ">= 50"}

STORM_S = 30.0
CALM_S = 6.0
DRIFT = 0.002
LEASE_SHARE = 0.9  # of the lease: what clocks that drift apart may differ by is left out


def run(short: bool) -> dict[str, float]:
    plays = [play(seed) for seed in range(6 if short else 500)]
    return {
        "histories_refused": sum(not linearizable(history) for history in plays),
        "history_operations": sum(map(len, plays)) / len(plays),
    }


def play(seed: int, part: Any = Election) -> list[Any]:
    """The history of one life of a team of 3, 5 or 7."""
    dice = random.Random(f"history {seed}")
    trial = Trial(seed, part, dice.choice([3, 5, 7]))
    trial.start()
    for host in trial.world.hosts.values():
        host.boot_rate = dice.uniform(1 - DRIFT, 1 + DRIFT)
    clients = Clients(trial)
    clients.go_on()
    begin_storm(trial, dice, STORM_S)
    trial.world.run(STORM_S)
    trial.calm()
    trial.world.run(CALM_S)
    return clients.recorder.history


class Clients:
    """They ask any node, now and then, and write down what came of it."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.recorder = Recorder()
        self._open: dict[tuple[bytes, int, bytes], int] = {}
        self._count = 0
        trial.world.on_event.append(self._on_event)

    def go_on(self) -> None:
        world = self._trial.world
        for node, member in members(world).items():
            if member.role is Role.COORDINATOR and not world.hosts[node].frozen:
                self._propose(node) if world.rng.random() < 0.6 else self._read(node, member)
        world.after(world.rng.uniform(0.1, 0.5), self.go_on)

    def _propose(self, node: bytes) -> None:
        self._count += 1
        step = b"value %d" % self._count
        call = node, self._trial.world.hosts[node].life, step
        self._open[call] = self.recorder.invoke("append", step, self._trial.world.time_s)
        taken = self._trial.propose(node, step)
        if not taken and self._trial.world.hosts[node].machine is not None:  # else the power failed: who knows
            self.recorder.fail(self._open.pop(call))

    def _read(self, node: bytes, member: Election) -> None:
        now_s, seen = self._trial.world.time_s, read_decided(member, self._trial.world.now_at(node))
        if seen is not None:
            self.recorder.ok(self.recorder.invoke("read", None, now_s), now_s, seen)

    def _on_event(self, world: World, node: bytes, event: Any) -> None:
        if isinstance(event, Committed):
            handle = self._open.pop((node, world.hosts[node].life, value_of(event.entry.step)), None)
            if handle is not None:
                self.recorder.ok(handle, world.time_s)


def read_decided(member: Election, now: Any) -> tuple[bytes, ...] | None:
    """All that is decided, if this member may tell: it leads, decided in its term, and holds its lease."""
    lead, newest = member._replication, member.entry_at(member.commit_index)
    if lead is None or newest is None or newest.entry.term != member.term:
        return None
    if not lead.holds_lease(now, LEASE_SHARE * member._timing.lease_s) or member._slept(now):
        return None
    entries = (member.entry_at(index) for index in range(1, member.commit_index + 1))
    return tuple(value_of(held.entry.step) for held in entries if held is not None and held.entry.step)


def value_of(step: bytes) -> bytes:
    """A trial's step is a value and four bytes of count."""
    return step[:-4]
