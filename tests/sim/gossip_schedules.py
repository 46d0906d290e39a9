"""Directed lives of a team's channel: schedules that random dice seldom throw. Each raises Violation."""

import itertools
from collections.abc import Callable

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.gossip import blobs
from ioa_p2p.gossip.commands import GetBlob, PutBlob
from ioa_p2p.gossip.events import Behind, BlobHave, BlobMissing
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entries
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, TEAM, chain, signed
from tests.sim import gossip_away, gossip_removed
from tests.sim.gossip import HEAL_S, Plant, Team
from tests.sim.scenario import Violation
from tests.sim.world import Weather, World

AWAY_ENTRIES = 400
CONNECT_S = 10.0  # long before the frontier by the clock
DEAF_ENTRIES = limits.CHAT_UNANSWERED_MAX + 60


def away_and_back() -> Team:
    """A member is away for hundreds of entries; on connect it has them all soon, without the 30 s timer."""
    team = Team(1, 4)
    team.link_all()
    team.crash(team.nodes[3])
    for number in range(AWAY_ENTRIES):
        team.world.after(number * 0.02, lambda: team.say(team.world.rng.choice(team.nodes[:3])))
    team.world.run(AWAY_ENTRIES * 0.02 + 5.0)
    team.restart(team.nodes[3])
    team.must_be_equal_within(CONNECT_S)
    return team


def replays() -> Team:
    """Everything ever said is injected again, ten minutes later and after a restart; nothing is said twice."""
    team = Team(1, 3)
    team.link_all()
    for number in range(12):
        team.world.after(number * 0.1, lambda: team.say(team.world.rng.choice(team.nodes)))
    team.world.run(10.0)
    said = [(node, raw) for node in team.nodes for raw in _saved_frames(team, node)]
    team.world.run(600.0)
    _inject(team, said)
    for node in team.nodes:
        team.crash(node)
        team.restart(node)
    _inject(team, said)
    team.say(team.nodes[0])
    team.must_be_equal_within(HEAL_S)
    return team


def two_histories() -> Team:
    """An author tells the two halves of a team two histories; all freeze it at the last common entry."""
    team = _team_with_dead_liar()
    team.link_all()
    one, two = _histories(KEYS[3], common=3, length=6)
    for node, history in zip(team.honest, (one, two, one[:4]), strict=True):
        _inject(team, [(KEYS[3].node, raw) for raw in history], [node])
    team.world.run(HEAL_S)
    _must_all_know_fork(team, 3)
    said = team.said[team.nodes[0]][KEYS[3].node]
    _inject(team, [(KEYS[3].node, signed(KEYS[3], said + 1, blake(one[said - 1])))])
    if team.said[team.nodes[0]][KEYS[3].node] != said:
        raise Violation("C5", "a frozen author was heard")
    for node in team.honest:
        team.say(node)
    team.must_be_equal_within(HEAL_S)
    return team


def fork_seen_by_one() -> Team:
    """Only one member ever hears the second history: it gives the others the proof."""
    team = _team_with_dead_liar()
    one, two = _histories(KEYS[3], common=3, length=6)
    _inject(team, [(KEYS[3].node, raw) for raw in one])
    _inject(team, [(KEYS[3].node, two[3])], [team.nodes[0]])
    team.link_all()
    team.world.run(HEAL_S)
    _must_all_know_fork(team, 3)
    return team


def wrong_link() -> Team:
    """An entry whose number fits but whose hash link does not is never said."""
    team = _team_with_dead_liar()
    liar = KEYS[3]
    _inject(team, [(liar.node, chain(liar, 1)[0]), (liar.node, signed(liar, 2, bytes(32), b"unlinked"))])
    if any(said != {liar.node: 1} for said in team.said.values()):
        raise Violation("C5", "an entry without its link was said")
    return team


def one_waits_for_another() -> Team:
    """A reads B's line and answers; C, cut off from B, hears the answer first and must wait for the line."""
    team = Team(1, 3)
    a, b, c = team.nodes
    team.link_all()
    team.world.run(1.0)
    team.world.cut(b, c)
    for _ in range(10):
        team.say(b)
        team.world.run(0.5)
        team.say(a)
        team.world.run(0.5)
    team.world.mend()
    team.must_be_equal_within(HEAL_S)
    return team


def one_never_reads() -> Team:
    """One member takes nothing off its links: the others are not slowed; it catches up later."""
    team = Team(1, 4)
    team.link_all()
    speaker, reader, _, deaf = team.nodes
    for other in team.nodes[:3]:
        team.world.cut(other, deaf)
    for number in range(DEAF_ENTRIES):
        team.world.after(number * 0.01, lambda: team.say(speaker))
    team.world.run(DEAF_ENTRIES * 0.01 + 1.0)
    if team.said[reader][speaker] != DEAF_ENTRIES:
        raise Violation("C6", "a deaf member slowed the others")
    if [event for _, _, event in team.world.events if isinstance(event, Behind)] != [Behind(TEAM, deaf, True)]:
        raise Violation("C6", "a deaf member was pushed to for ever")
    team.world.mend()
    team.must_be_equal_within(HEAL_S)
    return team


def silent_cut() -> Team:
    """Messages are lost while the links stand: the next frontier by the clock repairs it."""
    team = Team(1, 3)
    team.link_all()
    team.world.run(5.0)
    team.world.split(team.nodes[:1], team.nodes[1:])
    for _ in range(5):
        team.say(team.nodes[0])
        team.say(team.nodes[1])
        team.world.run(1.0)
    team.world.mend()
    team.must_be_equal_within(HEAL_S)
    return team


def in_a_line() -> Team:
    """Members linked only to their neighbours in a line: a word reaches the far end in a moment."""
    team = Team(1, 5)
    for one, other in itertools.pairwise(team.nodes):
        team.link(one, other)
    team.world.run(5.0)
    for node in team.nodes:
        team.say(node)
        team.must_be_equal_within(1.0)
    return team


def blob_through_bad_weather() -> Team:
    """Pieces get lost, links come and go, one giver dies, the taker restarts: the blob arrives whole."""
    team = Team(1, 4, Weather(loss=0.1, duplicate=0.1, delay_s=(0.05, 0.2)))
    team.link_all()
    data = bytes(range(256)) * 16_000
    name = blobs.name_of(data)
    givers, taker = team.nodes[:2], team.nodes[3]
    for node in givers:
        team.world.command(node, PutBlob(data))
    team.world.command(taker, GetBlob(TEAM, name))
    for second in (1.0, 2.0, 3.0):
        team.world.at(second, lambda: team.link(givers[0], taker, False))
        team.world.at(second + 0.5, lambda: team.link(givers[0], taker))
    team.world.run(4.0)
    team.crash(givers[1])
    team.crash(taker)
    team.restart(taker)
    _fetch_whole(team, taker, name)
    disk = team.world.hosts[taker].disk
    if blobs.read(lambda space: list(disk.scan(space)), name) != data:
        raise Violation("L3", "a blob is not what was put")
    return team


def _fetch_whole(team: Team, taker: bytes, name: bytes) -> None:
    """Ask once: a piece that got lost is asked for again, and nobody gives up while others come."""
    done: list[object] = []
    team.world.on_event.append(lambda world, node, event: done.append(event) if node == taker else None)
    team.world.command(taker, GetBlob(TEAM, name))
    team.world.run(2 * HEAL_S, until=lambda: bool(done) and isinstance(done[-1], BlobHave | BlobMissing))
    if not done or not isinstance(done[-1], BlobHave):
        raise Violation("L3", "a blob that a member has did not arrive")


def _team_with_dead_liar() -> Team:
    """Three honest members; of the fourth only what a test sends in its name is heard."""
    team = Team(1, 4, liars=1)
    team.world.crash(team.nodes[3])
    return team


def _inject(team: Team, said: list[tuple[bytes, bytes]], nodes: list[bytes] | None = None) -> None:
    for node in nodes or team.honest:
        for source, raw in said:
            team.world.deliver(source, node, Entries(raw))


def _saved_frames(team: Team, node: bytes) -> list[bytes]:
    disk = team.world.hosts[node].disk
    return [raw for space in disk.spaces(f"chat/{TEAM.hex()}/{node.hex()}/") for _, raw in disk.scan(space)]


def _histories(key: NodeKey, common: int, length: int) -> tuple[list[bytes], list[bytes]]:
    one = chain(key, length)
    two = one[:common]
    for seq in range(common + 1, length + 1):
        two.append(signed(key, seq, blake(two[-1]), b"another %d" % seq))
    return one, two


def _must_all_know_fork(team: Team, seq: int) -> None:
    if team.forks != {node: {team.nodes[3]: seq} for node in team.honest}:
        raise Violation("C5", f"not all froze the author at {seq}")


def _planted(schedule: Callable[[], Team]) -> Callable[[Plant], World]:
    def play(plant: Plant) -> World:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            return schedule().world

    return play


SCHEDULES: dict[str, Callable[[Plant], World]] = {
    "nobody has it": _planted(gossip_away.nobody_has_it),
    "away and back": _planted(away_and_back),
    "replays": _planted(replays),
    "two histories": _planted(two_histories),
    "fork seen by one": _planted(fork_seen_by_one),
    "wrong link": _planted(wrong_link),
    "one waits for another": _planted(one_waits_for_another),
    "one never reads": _planted(one_never_reads),
    "silent cut": _planted(silent_cut),
    "in a line": _planted(in_a_line),
    "blob through bad weather": _planted(blob_through_bad_weather),
    "long away": _planted(gossip_away.long_away),
    "two away": _planted(gossip_away.two_away),
    "removed author": _planted(gossip_removed.removed_author),
}
