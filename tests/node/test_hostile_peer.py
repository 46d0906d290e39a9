"""A hostile peer at every port of a running node: all is counted, nothing is kept, and the node goes on working."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.node.node import Node
from ioa_p2p.team.roster import sign
from ioa_p2p.wire import codec, decision, dht, gossip, ids, limits, roster, step, team
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.link import LinkKind
from tests.node.mallory import NETWORK, Mallory
from tests.node.mesh import HELLO, Mesh
from tests.wire.samples import pointer, record

WAIT_S = 60.0
GOAL = "greet somebody with a hello"
FLOOD = 10_000
STRANGER_TEAM = b"t" * 16


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    """A node that has just finished a goal with another, so that it has a team, a chain, a log and records."""
    async with Mesh(tmp_path) as made:
        made.make("victim", agents=[("hello", HELLO)])
        made.make("friend", seeds=("victim",), allow=("victim",), agents=[("hello", HELLO)])
        await asyncio.gather(made.start("victim"), made.start("friend"))
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(node.ready.wait() for node in made.nodes.values()))
        await works(made.nodes["victim"])
        yield made


@pytest.fixture
async def victim(mesh: Mesh) -> Node:
    return mesh.nodes["victim"]


@pytest.fixture
async def mallory(mesh: Mesh, victim: Node) -> AsyncIterator[Mallory]:
    async with Mallory(mesh.hub, victim) as made:
        yield made


async def works(node: Node) -> None:
    async with asyncio.timeout(WAIT_S):
        assert (await node.ask(GOAL, 30).follow(lambda _: None))["outcome"] == "concluded"


def faults(node: Node) -> int:
    drivers = (node.dht_driver, node.gossip_driver, node.teams_driver)
    assert not any(driver.faults["internal"] for driver in drivers), "a message made a machine fail"
    return sum(sum(each.faults.values()) for each in (node.switch, node.dht, *drivers))


def tokens(mallory: Mallory) -> list[bytes]:
    return [answer.token for answer in heard(mallory) if isinstance(answer, dht.Pong)]


def heard(mallory: Mallory) -> list[Any]:
    return [codec.decode(answer, dht.Datagram) for answer in mallory.answers]


# -- datagrams


async def test_garbage_of_every_size_is_answered_by_silence(mallory: Mallory, victim: Node) -> None:
    good = mallory.boxes.seal(victim.key.node, os.urandom(24), codec.encode(dht.Ping(1, True)))
    before = faults(victim)
    for cut in range(len(good)):
        mallory.throw(good[:cut])
        mallory.throw(good[:cut] + bytes([good[cut] ^ 1]) + good[cut + 1 :])
    for body in (b"", b"\xc1", b"\x91" * 1_000, bytes(1_126), codec.encode([99] * 50), codec.encode({"a": 1})):
        mallory.say(body)
    await mallory.until(lambda: faults(victim) - before == 2 * len(good) + 6)
    assert not mallory.answers


async def test_a_small_request_for_a_large_answer_gets_none(mallory: Mallory, victim: Node) -> None:
    head = [True, os.urandom(20)]
    for request in ([3, 1, *head], [4, 2, *head], [5, 3, *head], [5, 4, *head, b"", b""]):
        mallory.say(codec.encode(request))
    mallory.say(dht.FindNode(5, True, os.urandom(20)))
    await mallory.until(lambda: mallory.answers)
    assert victim.switch.faults["datagram-unpadded"] == 4
    assert [answer.id for answer in heard(mallory)] == [5]


async def test_ten_thousand_requests_of_one_key_leave_nothing_behind(mallory: Mallory, victim: Node) -> None:
    held = len(victim.dht.held)
    for number in range(FLOOD // 4):
        key = os.urandom(20)
        for request in (
            dht.FindNode(number, True, key),
            dht.FindPointers(number, True, key),
            dht.Store(number, True, os.urandom(8), os.urandom(300)),
            dht.Have(number, True, os.urandom(800)),
        ):
            mallory.say(request)
        if not number % 100:
            await asyncio.sleep(0)
    unanswered = victim.dht_driver.faults
    await mallory.until(lambda: len(mallory.answers) + unanswered["over-budget"] == FLOOD)
    assert unanswered["over-budget"] > 0
    assert len(victim.dht.held) == held
    assert all(answer.verdict == dht.Verdict.TOKEN for answer in heard(mallory) if isinstance(answer, dht.Stored))
    await works(victim)


async def test_forged_expired_and_future_records_are_not_kept(mallory: Mallory, victim: Node) -> None:
    held = {item.raw for item in victim.dht.held}
    mallory.say(dht.Ping(1, True))
    await mallory.until(lambda: tokens(mallory))
    (token,) = tokens(mallory)
    now = int(time.time())
    times = {"issued": now, "seq": now * 1_000}
    own, theirs = mallory.key, victim.key.node
    forged = [
        seal(own, NETWORK, Kind.RECORD, record(own, issued=now - 9_000, seq=1)),
        seal(own, NETWORK, Kind.RECORD, record(own, issued=now + 900, seq=1)),
        seal(own, NETWORK, Kind.POINTER, pointer(own, issued=now - 9_000, seq=1)),
        seal(own, ids.network_id("another"), Kind.RECORD, record(own, **times)),
        seal(own, NETWORK, Kind.LOG, record(own, **times)),
    ]
    good = seal(own, NETWORK, Kind.RECORD, record(own, **times))
    of_victim = good.replace(own.node, theirs)
    forged += [good[:-1] + bytes([good[-1] ^ 1]), good + b"x", good[:-1], of_victim]
    before = faults(victim)
    for number, frame in enumerate(forged):
        mallory.say(dht.Store(number, True, token, frame))
    await mallory.until(lambda: faults(victim) - before == len(forged))
    assert {item.raw for item in victim.dht.held} == held
    mallory.say(dht.Store(99, True, token, good))
    await mallory.until(lambda: any(isinstance(answer, dht.Stored) and answer.id == 99 for answer in heard(mallory)))
    assert good in {item.raw for item in victim.dht.held}


async def test_answers_nobody_asked_for_change_nothing(mallory: Mallory, victim: Node) -> None:
    contacts, before = victim.dht.contacts, faults(victim)
    lie = dht.pack_contact(dht.Contact(mallory.key.node, "127.0.0.1", 1))
    for number in range(1_000):
        mallory.say(dht.Found(number, False, bytes(8), (), (lie,) * 16))
    await mallory.until(lambda: faults(victim) - before >= 1_000)
    assert {contact.key for contact in victim.dht.contacts} == {contact.key for contact in contacts}


# -- links


@pytest.mark.parametrize("kind", [*LinkKind, 0, 77, 255])
async def test_a_peer_that_sends_garbage_is_cut_and_may_come_back(mallory: Mallory, victim: Node, kind: int) -> None:
    if kind in (LinkKind.PING, LinkKind.PONG):
        pytest.skip("what a ping holds is free")
    for number in range(2 * limits.LINK_BAD_FRAMES_MAX):
        mallory.frame(kind, (b"", b"\xc1", b"\x91" * 5_000, os.urandom(300))[number % 4])
    async with asyncio.timeout(WAIT_S):
        await mallory.cut.wait()
    faults(victim)
    await mallory.link()
    await works(victim)


def lies_of_a_stranger(victim: Node, own: NodeKey) -> list[tuple[LinkKind, Any]]:
    """Well-formed messages about a team of the victim's, from somebody who is not in it."""
    ours = next(iter(victim.teams.teams))
    task = next(iter(victim.teams.teams[ours].state.tasks))
    vote = decision.Vote(own.node, ours, 0, 9, own.node, 0, bytes(32), 99, 9)
    ballot = seal(own, NETWORK, Kind.VOTE, vote)
    entry = decision.Entry(own.node, ours, 0, 9, 99, bytes(32), 0, (ballot,) * 3, b"")
    signed = seal(own, NETWORK, Kind.DECISION, entry)
    return [
        (LinkKind.DECISION, decision.PreVoteRequest(ours, 0, 9, 99, 9)),
        (LinkKind.DECISION, decision.VoteRequest(ours, 0, limits.TERM_MAX, 99, 9, True)),
        (LinkKind.DECISION, decision.VoteReply(ours, 0, 9, ballot)),
        (LinkKind.DECISION, decision.Append(ours, 0, limits.TERM_MAX, 0, 0, (signed,) * 64, 99, 1, (ballot,) * 64)),
        (LinkKind.DECISION, decision.Ack(ours, 0, limits.TERM_MAX, True, 99, 1)),
        (LinkKind.DECISION, decision.HandOver(ours, limits.INCARNATION_MAX, 9)),
        (LinkKind.TEAM, team.Report(ours, task, 1, "succeeded", summary="done, pay me")),
        (LinkKind.TEAM, team.Said(ours, 0, "obey me")),
        (LinkKind.TEAM, team.LostLinks(ours, (victim.key.node,))),
        (LinkKind.TEAM, team.Wish(ours, "cancel")),
        (LinkKind.TEAM, team.Joined(ours)),
        (LinkKind.TEAM, team.Founding(signed)),
        (LinkKind.CHANNEL, gossip.Frontier(ours, (gossip.Head(own.node, 9, bytes(8), True),))),
        (LinkKind.CHANNEL, gossip.Want(ours, victim.key.node, 1, 2**62)),
        (LinkKind.CHANNEL, gossip.Held(ours, ((own.node, victim.key.node, 9),) * 256)),
        (LinkKind.CHANNEL, gossip.BlobWant(ours, os.urandom(32), -1)),
        (LinkKind.SIGNED, chat_line(own, ours)),
    ]


def chat_line(own: NodeKey, ours: bytes) -> bytes:
    entry = gossip.Entry(own.node, ours, 0, 1, gossip.FIRST_PREVIOUS, (), "text", b"obey me", int(time.time()))
    return seal(own, NETWORK, Kind.LOG, entry)


async def test_whoever_is_not_in_a_team_neither_hears_nor_changes_it(mallory: Mallory, victim: Node) -> None:
    ours = next(iter(victim.teams.teams))
    state, term = victim.teams.teams[ours].state, victim.teams.teams[ours].election.term
    lies = lies_of_a_stranger(victim, mallory.key)
    mallory.heard.clear()
    before = faults(victim)
    for kind, lie in lies:
        mallory.frame(kind, lie)
    await mallory.until(lambda: faults(victim) - before == len(lies))
    assert (victim.teams.teams[ours].state, victim.teams.teams[ours].election.term) == (state, term)
    assert not [kind for kind, _ in mallory.heard if kind != LinkKind.DIRECTORY]
    await works(victim)


async def test_a_stranger_neither_employs_a_node_nor_founds_a_team_with_it(mallory: Mallory, victim: Node) -> None:
    now = int(time.time())
    members = tuple(
        roster.Member(node, "hello", (roster.SkillBrief("text.greet"),)) for node in (mallory.key.node, victim.key.node)
    )
    signed_roster = roster.Roster(STRANGER_TEAM, 0, "work for me", mallory.key.node, members, now, now + 600)
    encoded = codec.encode(signed_roster)
    mine = sign(mallory.key, NETWORK, encoded, victim.dht_driver._clock())
    teams = set(victim.teams.teams)
    before = faults(victim)
    mallory.frame(LinkKind.TEAM, team.Call(STRANGER_TEAM, "hello", ("text.greet",), "work for me", now + 600))
    mallory.frame(LinkKind.TEAM, team.Invitation(encoded))
    for invites in ((mine,), (mine, mine), ()):
        found = step.encode_step(step.Found(encoded, invites))
        entry = decision.Entry(mallory.key.node, STRANGER_TEAM, 0, 0, 0, bytes(32), now, (), found)
        mallory.frame(LinkKind.TEAM, team.Founding(seal(mallory.key, NETWORK, Kind.DECISION, entry)))
    await mallory.until(lambda: faults(victim) - before >= 3)
    await mallory.until(lambda: any(kind == LinkKind.TEAM for kind, _ in mallory.heard))
    said = [codec.decode(body, team.Decline) for kind, body in mallory.heard if kind == LinkKind.TEAM]
    assert {one.reason for one in said} == {"not-allowed"}
    assert set(victim.teams.teams) == teams


async def test_a_neighbour_that_wants_and_tells_everything_gets_bounded_answers(mallory: Mallory, victim: Node) -> None:
    held = {item.raw for item in victim.dht.held}
    lies = tuple((os.urandom(20), 2**62) for _ in range(limits.DIGEST_ENTRIES_MAX))
    mallory.heard.clear()
    for _ in range(20):
        mallory.frame(LinkKind.DIRECTORY, dht.Digest(lies))
        mallory.frame(LinkKind.DIRECTORY, dht.Want(tuple(slot for slot, _ in lies)))
        mallory.frame(LinkKind.DIRECTORY, dht.Records(tuple(held) * 3))
        mallory.frame(LinkKind.DIRECTORY, dht.CardGiven(os.urandom(32), b"card"))
        mallory.frame(LinkKind.DIRECTORY, dht.CardWanted(os.urandom(32)))
    await mallory.until(lambda: sum(kind == LinkKind.DIRECTORY for kind, _ in mallory.heard) >= 20)
    assert {item.raw for item in victim.dht.held} == held
    await works(victim)


async def test_ten_thousand_small_frames_cost_others_nothing(mallory: Mallory, victim: Node) -> None:
    small = codec.encode(dht.CardWanted(bytes(32)))
    for number in range(FLOOD):
        mallory.frame(LinkKind.DIRECTORY, small)
        if not number % 500:
            await asyncio.sleep(0)
    await works(victim)
    faults(victim)


async def test_what_a_friend_once_said_is_not_heard_from_a_stranger(mallory: Mallory, victim: Node) -> None:
    ours = next(iter(victim.teams.teams))
    spaces = victim.storage.spaces(f"decision/{ours.hex()}") + victim.storage.spaces(f"chat/{ours.hex()}")
    frames = [value for space in spaces for _, value in victim.rows(space)]
    assert len(frames) > 3
    told, before = len(victim.stories.of(ours).events), faults(victim)
    for frame in frames:
        mallory.frame(LinkKind.TEAM, team.Founding(frame))
        mallory.frame(LinkKind.DECISION, decision.Append(ours, 0, 1, 0, 0, (frame,), 0, 1))
        mallory.frame(LinkKind.SIGNED, frame)
    await mallory.until(lambda: faults(victim) - before >= 2 * len(frames))
    assert len(victim.stories.of(ours).events) == told
    await works(victim)
