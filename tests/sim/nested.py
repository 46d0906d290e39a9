"""Teams within teams under random faults, then under none: every team ends, the root by its own deadline.

0 s ── launch; launchers, coordinators, workers die and come back, cuts, bad weather ──> 25 s ── calm ──> the end
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from ioa_p2p.team.commands import CancelTeam, Policy
from ioa_p2p.team.machine import Teams
from ioa_p2p.wire.roster import Caps
from ioa_p2p.wire.spending import Allowance, Spent
from tests.sim.estate import ASYNC, SYNC, Estate
from tests.sim.jobs import TEAM
from tests.sim.nested_checks import watch_nested
from tests.sim.scenario import Violation
from tests.sim.world import Weather, World

STORM_S = 25.0
GOAL_S = 150
LATE_S = 60.0
TERMS_S = 10.0  # an orphan may live longer where who leads it changes again and again: each first listens for a beat


def play(seed: int, part: Any = Teams) -> World:
    """One seed. Raises Violation."""
    dice = random.Random(f"nested {seed}")
    budget = Allowance(dice.choice([None, 1_000]), calls=dice.choice([None, 40]), agents=dice.choice([12, 64]))
    policy = Policy(goal_s=GOAL_S, caps=Caps(budget=budget))
    estate = Estate(seed, goal=dice.choice([SYNC, ASYNC]), machine=part, policy=policy)
    longest_s = dice.choice([2.0, 8.0, 20.0])
    estate.run_s = lambda spec: 0.5 + longest_s * (spec.id[0] / 255)
    estate.spends = lambda spec: Spent((spec.budget.tokens or 0) * spec.id[2] // 255, calls=1)
    watch_nested(estate, TERMS_S)
    estate.world.weather = _weather(dice)
    estate.start()
    estate.launch()
    _storm(estate, dice)
    estate.world.run(STORM_S)
    calm(estate)
    end(estate, GOAL_S + LATE_S)
    return estate.world


def _storm(estate: Estate, dice: random.Random) -> None:
    at = dice.uniform(0.5, 4)
    while at < STORM_S - 1:
        estate.world.at(at, _fault(estate, dice))
        at += dice.uniform(2, 12)


def _fault(estate: Estate, dice: random.Random) -> Callable[[], None]:
    world, (node, other) = estate.world, dice.sample(estate.nodes, 2)
    seconds, weather = dice.choice([1.0, 4.0, 14.0]), _weather(dice)
    match dice.randrange(6):
        case 0:
            return lambda: setattr(world, "weather", weather)
        case 1:
            return partial(_cut, world, node, other, seconds)
        case 2:
            return lambda: kill(estate, _busy(estate, dice, coordinates=True), seconds)
        case 3:
            return lambda: kill(estate, _busy(estate, dice, coordinates=False), seconds)
        case 4:
            return partial(_freeze, estate, node, seconds)
        case _:
            return lambda: kill(estate, node, seconds)


def _busy(estate: Estate, dice: random.Random, *, coordinates: bool) -> bytes:
    """The coordinator, or the launcher, of some nested team; the first asker otherwise."""
    teams = [next(iter(there.values())) for _, there in sorted(estate.nested().items()) if there]
    nodes = [team.coordinator if coordinates else team.state.roster.launcher for team in teams]
    return dice.choice([node for node in nodes if node is not None] or estate.nodes)


def kill(estate: Estate, node: bytes, seconds: float | None = None) -> None:
    """seconds: until it is started again; None: never."""
    if estate.world.hosts[node].machine is None:
        return
    estate.crash(node)
    if seconds is not None:
        estate.world.after(seconds, partial(back, estate, node))


def back(estate: Estate, node: bytes) -> None:
    if estate.world.hosts[node].machine is None:
        estate.restart(node)


def _freeze(estate: Estate, node: bytes, seconds: float) -> None:
    if estate.world.hosts[node].machine is not None:
        estate.world.freeze(node)
        estate.world.after(seconds, lambda: estate.world.thaw(node))


def _cut(world: World, node: bytes, other: bytes, seconds: float) -> None:
    world.cut(node, other)
    world.after(seconds, lambda: world.mend(node, other))


def _weather(dice: random.Random) -> Weather:
    return Weather(dice.choice([0.0, 0.05, 0.2]), dice.choice([0.0, 0.1]), (0.001, dice.choice([0.02, 0.3])))


def calm(estate: Estate) -> None:
    """Everybody is back, nothing is lost."""
    world = estate.world
    world.weather = Weather()
    world.mend()
    for node in estate.nodes:
        if world.hosts[node].frozen:
            world.thaw(node)
        back(estate, node)


def end(estate: Estate, within_s: float) -> None:
    """Every team ends, everywhere. Raises Violation('L2')."""
    if not estate.world.run(within_s, until=lambda: estate.all_over()):
        left = sorted(
            (team.hex()[:8], estate.names[node]) for team, there in estate.everything.items()
            for node, one in there.items() if one.state.conclusion is None
        )  # fmt: skip
        raise Violation("L2", f"no end at {left}")


def cancel(estate: Estate) -> None:
    estate.tell(estate.asker, CancelTeam(TEAM))
