"""Before a node stops: the teams that it coordinates get another coordinator, and its first decision, so that there
is no gap.

StandAside ──> successors stand ──> each team settled under another, or time is up
"""

import asyncio

from ioa_p2p.node.runtime import Driver
from ioa_p2p.team.election_events import StandAside
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.team import Team

HAND_OVER_S = 2.0  # a successor that hears us needs a few round trips; others will find out by themselves
_LOOK_S = 0.02


async def hand_over(machine: Teams, driver: Driver) -> None:
    """At most `HAND_OVER_S`; at once where we coordinate nothing, or nobody else may."""
    led = [team for team in machine.teams.values() if _could_hand_over(team)]
    if not led:
        return
    driver.command(StandAside(True))
    try:
        async with asyncio.timeout(HAND_OVER_S):
            while not all(_is_led_by_another(team) for team in led):  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        return


def _could_hand_over(team: Team) -> bool:
    """We coordinate it, it is not over, and another may coordinate."""
    return team.coordinator == team.node and team.state.conclusion is None and team.election.may_be_followed


def _is_led_by_another(team: Team) -> bool:
    """Another coordinates it, and decided something as such."""
    return team.coordinator not in (None, team.node) and team.election.is_settled
