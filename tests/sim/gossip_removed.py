"""Lives of a team's channel that an author was removed from: its lines count up to the cut, for all, and no further."""

from collections.abc import Sequence

from tests.sim.gossip import HEAL_S, Team
from tests.sim.scenario import Violation

LINES = 12
CUT = 7
LEAST = 3


def removed_author() -> Team:
    """Members hold 12, 7 and 3 of its lines as it is removed at 7, and one nothing, which was away. The first learns of
    it late, and tells on what it goes on saying; the last restarts, and must remember."""
    team = Team(1, 5)
    *members, away, gone = team.nodes
    first, *others = members
    _hear(team, gone, members)
    for node in others:
        team.remove(node, gone, CUT)
    team.crash(others[-1])
    team.restart(others[-1])
    _talk(team, gone, members)
    team.remove(first, gone, CUT)
    _must_count_up_to_the_cut(team, gone, members)
    team.remove(away, gone, CUT)
    team.link_all()
    _must_count_up_to_the_cut(team, gone, [*members, away])
    return team


def _hear(team: Team, gone: bytes, members: Sequence[bytes]) -> None:
    """The links of the second and the third are lost on the way."""
    for node in members:
        team.link(gone, node)
    for number in range(LINES):
        if number in (LEAST, CUT):
            team.link(gone, members[2 if number == LEAST else 1], up=False)
        team.say(gone)
        team.world.run(0.5)


def _talk(team: Team, gone: bytes, members: Sequence[bytes]) -> None:
    """Members answer what they know; who was removed does not know that it was."""
    for place, node in enumerate(members):
        team.link(node, gone)
        for other in members[place + 1 :]:
            team.link(node, other)
    for node in (gone, *members) * 3:
        team.say(node)
        team.world.run(0.5)


def _must_count_up_to_the_cut(team: Team, gone: bytes, nodes: Sequence[bytes]) -> None:
    """Who had heard more of it before it was removed said more; that is no more served to others."""

    def counted() -> bool:
        return all(team.said[node].get(gone, 0) >= CUT for node in nodes)

    if not team.world.run(HEAL_S, until=counted):
        raise Violation("I11", "lines up to the cut are lost")
    team.world.run(HEAL_S)
