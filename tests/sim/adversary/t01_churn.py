"""T01: 30 % of the nodes replaced a minute, for an hour. ttl 10 min; publishers that stay, and that come and go too.

    every 5 s somebody alive looks an agent up ── found? past its time? ── dial check ── there? ──> figures

Each short-lived node comes back after a while at its address with an empty disk, and publishes its agent again.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from ioa_p2p.dht import commands, events
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from ioa_p2p.wire.records import AgentRecord
from tests.dht.mesh import Mesh, card
from tests.sim.world import Weather

BARS = {"churn_success": ">= 0.99", "churn_p95_s": "<= 5", "dead_returned": "== 0", "crashed_returned": "== 0"}

WEATHER = Weather(loss=0.01, duplicate=0.01, delay_s=(0.005, 0.08))
SEEDS = 3
MEAN_LIFE_S = 200.0  # 30 % of the living end in a minute
AWAY_S = 20.0  # mean, before the next life at that address
TTL_S = 600


@dataclass
class Tally:
    """Of lookups. found: of agents whose publisher lived and had time to publish."""

    found: dict[str, list[bool]] = field(default_factory=lambda: {"stays": [], "churns": []})
    seconds: list[float] = field(default_factory=list[float])
    dead: int = 0
    offered: int = 0
    crashed_found: int = 0
    crashed_offered: int = 0


class Churn:
    """The seeds and `stay` publishers live for ever; all others come and go, some of them publishing."""

    def __init__(self, seed: int, size: int, stay: int, churning: int) -> None:
        self.mesh = Mesh(seed, size, WEATHER)
        self.world = self.mesh.world
        self.dice = random.Random(f"churn {seed}")
        self.stays = self.mesh.contacts[SEEDS : SEEDS + stay]
        self.brief = self.mesh.contacts[SEEDS + stay :]
        self.churns = self.brief[:churning]
        self.published_s: dict[Contact, float] = {}
        self.tally = Tally()
        self.world.on_event.append(self._note)

    def begin(self) -> None:
        self.mesh.join_all(seeds=SEEDS, over_s=20)
        for contact in (*self.stays, *self.churns):
            self.publish(contact)
        self.world.run(20)
        for contact in self.brief:
            self.world.after(self.dice.expovariate(1 / MEAN_LIFE_S), lambda contact=contact: self.die(contact))

    def publish(self, contact: Contact) -> None:
        self.world.command(contact, commands.Publish(card("worker"), ttl=TTL_S, endpoint=endpoint(contact)))

    def die(self, contact: Contact) -> None:
        self.world.crash(contact, lose_disk=True)
        self.published_s.pop(contact, None)
        self.world.after(self.dice.expovariate(1 / AWAY_S), lambda: self.come(contact))

    def come(self, contact: Contact) -> None:
        self.world.restart(contact)
        self.mesh.join(contact, self.mesh.contacts[:SEEDS])
        if contact in self.churns:
            self.publish(contact)
        self.world.after(self.dice.expovariate(1 / MEAN_LIFE_S), lambda: self.die(contact))

    def look_up(self) -> None:
        """Somebody who is ready looks for somebody's agent, and pings its node before offering it."""
        kind = self.dice.choice(("stays", "churns"))
        owner = self.dice.choice(self.stays if kind == "stays" else self.churns)
        askers = [one for one in self.mesh.alive() if one != owner and self.mesh.machine(one).contacts]
        asker = self.dice.choice(askers)
        began_s, due = self.world.time_s, owner in self.published_s
        record = self._answer(asker, commands.SearchRecord(1, owner.key, "worker"), events.RecordFound)
        if record is None:
            return  # the asker died meanwhile
        self.tally.seconds.append(self.world.time_s - began_s)
        if due and owner in self.published_s:
            self.tally.found[kind].append(record.record is not None)
        if record.record is not None:
            self._offer(asker, owner, record.record)

    def _offer(self, asker: Contact, owner: Contact, record: AgentRecord) -> None:
        wall_s = self.world.now(self.world.hosts[asker]).wall
        self.tally.dead += record.issued + record.ttl + limits.CLOCK_SKEW_S <= wall_s
        host, _, port = record.endpoint.rpartition(":")
        crashed, life = not self._up(owner), self.world.hosts[owner].life
        probed = self._answer(asker, commands.Probe(1, Contact(owner.key, host, int(port))), events.Probed)
        self.tally.crashed_found += crashed
        if probed is not None and probed.there:
            self.tally.offered += 1
            self.tally.crashed_offered += crashed and self.world.hosts[owner].life == life

    def _up(self, contact: Contact) -> bool:
        return self.world.hosts[contact].machine is not None

    def _answer(self, asker: Contact, command: Any, kind: type[Any]) -> Any:
        """The event that answers, or None if the asker died first."""
        life, start = self.world.hosts[asker].life, len(self.world.events)
        self.world.command(asker, command)

        def told() -> Any:
            events_now = self.world.events[start:]
            return next((one for _, who, one in events_now if who == asker and isinstance(one, kind)), None)

        self.world.run(20, until=lambda: told() is not None or self.world.hosts[asker].life != life)
        return told()

    def _note(self, world: Any, contact: Any, event: Any) -> None:
        if isinstance(event, events.Published):
            self.published_s.setdefault(contact, world.time_s)


def endpoint(contact: Contact) -> str:
    return f"{contact.host}:{contact.port}"


def run(short: bool) -> dict[str, float]:
    churn = Churn(1, 60, 6, 12) if short else Churn(1, 200, 20, 40)
    end_s = 4 * 60 if short else 60 * 60
    churn.begin()
    end_s += churn.world.time_s
    while churn.world.time_s < end_s:
        churn.world.run(5)
        churn.look_up()
    tally = churn.tally
    seconds = sorted(tally.seconds)
    return {
        "churn_success": _share(tally.found["stays"]),
        "churn_success_churning": _share(tally.found["churns"]),
        "churn_p95_s": seconds[int(0.95 * (len(seconds) - 1))],
        "churn_lookups": len(seconds),
        "churn_offered": tally.offered,
        "churn_crashed_found": tally.crashed_found,
        "dead_returned": tally.dead,
        "crashed_returned": tally.crashed_offered,
    }


def _share(found: list[bool]) -> float:
    return sum(found) / len(found)
