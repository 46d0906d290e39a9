"""One value of every wire type, with fixed keys, times and texts. A new wire type is added here."""

from typing import Any

from ioa_p2p.crypto import envelope
from ioa_p2p.wire import (
    codec,
    decision,
    dht,
    gossip,
    ids,
    limits,
    link,
    records,
    roster,
    seeds,
    spending,
    step,
    team,
    transcript,
)
from ioa_p2p.wire.frames import Kind
from tests.wire.samples import ALICE, BOB, NETWORK, card, pointer, record

WALL = 1_800_000_000
TEAM, TASK, KEY = (bytes([number]) * 16 for number in (0xA1, 0xB2, 0xC3))
HASH = ids.blake(b"something")
TOKEN = bytes(range(8))
PLACE = ids.dht_id(ALICE.node)
CURSOR = bytes(range(6))
CONTACT = dht.pack_contact(dht.Contact(BOB.node, "127.0.0.1", 4001))
CONTACT_V6 = dht.pack_contact(dht.Contact(BOB.node, "2001:db8::1", 4001))

SKILL = roster.SkillBrief(
    "stats.outliers", ("metrics.samples*",), ("stats.outliers",), "pure", "Finds what is unusual."
)
MEMBER = roster.Member(ALICE.node, "analyst", (SKILL,), ("/ip4/127.0.0.1/tcp/4001",), True, 7, 0, "Statistics.")
OTHER = roster.Member(BOB.node, "writer", may_coordinate=True)
BLOB = step.Blob("report.md", "text/markdown", HASH, 2_048)
ROSTER = roster.Roster(TEAM, 0, "How are my devices doing?", ALICE.node, (MEMBER, OTHER), WALL, WALL + 600)
INVITE = team.Invite(ALICE.node, TEAM, ids.blake(codec.encode(ROSTER)), WALL, WALL + 600)
BID = team.Bid(ALICE.node, TEAM, MEMBER, WALL, 12, WALL, WALL + 60)
INPUTS = (step.Input("metrics.samples", (TASK,)), step.Input("text", value=codec.encode("hello")))
SPEC = step.TaskSpec(
    TASK,
    KEY,
    BOB.node,
    "writer",
    "text.report",
    "Write it.",
    INPUTS,
    "idempotent",
    WALL + 300,
    budget=spending.Allowance(2_000, 50_000, 3),
)
SPENT = spending.Spent(1_500, 30_000, 1)
FOUND = step.Found(codec.encode(ROSTER), (envelope.seal(ALICE, NETWORK, Kind.INVITE, INVITE),))

VOTE = decision.Vote(ALICE.node, TEAM, 0, 1, BOB.node, 0, HASH, 0, 0)
VOTE_FRAME = envelope.seal(ALICE, NETWORK, Kind.VOTE, VOTE)
FOUNDING = decision.Entry(ALICE.node, TEAM, 0, 0, 0, bytes(32), WALL, (), step.encode_step(FOUND))
FIRST = decision.Entry(ALICE.node, TEAM, 0, 1, 1, HASH, WALL, (VOTE_FRAME,), b"")
ENTRY_FRAME = envelope.seal(ALICE, NETWORK, Kind.DECISION, FIRST)

LINE = gossip.Entry(ALICE.node, TEAM, 0, 1, bytes(32), (), "text", b"Hello.", WALL)
ANSWER = gossip.Entry(ALICE.node, TEAM, 0, 2, HASH, ((BOB.node, 3),), "text", "你好".encode(), WALL + 1)

HELLO = link.Hello(
    link.VERSION,
    NETWORK,
    1_799_999_999_000,
    software="ioa-p2p 0.1.0",
    features=("relay",),
    addresses=("/ip4/127.0.0.1/tcp/4001",),
    endpoint="127.0.0.1:4001",
)

SEED_LIST = seeds.SeedList(
    ALICE.node, 7, WALL, WALL + 90 * 86_400, (f"{ids.node_text(BOB.node)}@seed.example.org:4701",)
)

SIGNED: dict[str, tuple[Kind, Any]] = {
    "a record": (Kind.RECORD, record()),
    "a record that says gone": (Kind.RECORD, record(gone=True, ttl=limits.TTL_S_DEFAULT + limits.GONE_EXTRA_TTL_S)),
    "a record with an owner's certificate": (Kind.RECORD, record(owner_cert=bytes(range(140)))),
    "a pointer": (Kind.POINTER, pointer()),
    "a pointer of a shard": (Kind.POINTER, pointer(depth=4, sketch=bytes(range(64)), endpoint=bytes(18))),
    "an author's first line": (Kind.LOG, LINE),
    "a line that had seen others": (Kind.LOG, ANSWER),
    "a vote": (Kind.VOTE, VOTE),
    "the founding entry": (Kind.DECISION, FOUNDING),
    "a term's first entry": (Kind.DECISION, FIRST),
    "an invitation accepted": (Kind.INVITE, INVITE),
    "a bid": (Kind.BID, BID),
    "a seed list": (Kind.SEEDS, SEED_LIST),
    "the seal of a transcript": (Kind.TRANSCRIPT, transcript.Seal(ALICE.node, TEAM, WALL + 9, 1, 1, HASH)),
}

UNSIGNED: tuple[Any, ...] = (
    card(),
    records.RecordHead(ALICE.node, "analyst", 1, WALL, 60),
    HELLO,
    link.Hello(link.VERSION, NETWORK, 0),
    dht.Ping(1, False),
    dht.Pong(1, False, TOKEN, dht.pack_endpoint("127.0.0.1", 4001), 1_800_000_000),
    dht.FindNode(2, True, PLACE),
    dht.FindRecord(3, False, PLACE),
    dht.FindPointers(4, False, PLACE, CURSOR, bytes(range(64))),
    dht.Found(
        2,
        False,
        TOKEN,
        (envelope.seal(ALICE, NETWORK, Kind.POINTER, pointer()),),
        (CONTACT, CONTACT_V6),
        CURSOR,
        True,
        HASH[:4],
    ),
    dht.Store(5, False, TOKEN, envelope.seal(ALICE, NETWORK, Kind.RECORD, record())),
    dht.Stored(5, False, dht.Verdict.KEPT),
    dht.Have(6, False, HASH[:8] * 2),
    dht.Had(6, False, TOKEN, b"\x00\x01"),
    dht.DialBack(7, True),
    dht.Introduce(8, False, CONTACT),
    dht.Digest(((PLACE, 1),)),
    dht.Want((PLACE,)),
    dht.Records((envelope.seal(ALICE, NETWORK, Kind.RECORD, record()),)),
    dht.CardWanted(HASH),
    dht.CardGiven(HASH, codec.encode(card())),
    gossip.Frontier(TEAM, (gossip.Head(ALICE.node, 2, HASH[:8], True),), b"head"),
    gossip.Want(TEAM, ALICE.node, 1, 2),
    gossip.Held(TEAM, ((BOB.node, ALICE.node, 2),)),
    gossip.BlobWant(TEAM, HASH, -1),
    gossip.BlobPiece(TEAM, HASH, 0, b"piece"),
    gossip.BlobNone(TEAM, HASH),
    gossip.Served(TEAM, ALICE.node, 1, 2),
    gossip.Manifest(5, (ids.blake(b"piece"),)),
    decision.PreVoteRequest(TEAM, 0, 2, 1, 1),
    decision.PreVoteReply(TEAM, 0, 2, True),
    decision.VoteRequest(TEAM, 0, 2, 1, 1, False, 0, HASH),
    decision.VoteReply(TEAM, 0, 2, VOTE_FRAME),
    decision.Append(TEAM, 0, 1, 0, 0, (ENTRY_FRAME,), 0, 123_456, (VOTE_FRAME,)),
    decision.Ack(TEAM, 0, 1, True, 1, 123_456),
    decision.HandOver(TEAM, 0, 1),
    decision.SnapshotPart(TEAM, 0, 1, 512, 5, 0, b"part", 123_456),
    decision.SnapshotAck(TEAM, 0, 1, 512, 4, 123_456),
    decision.Introduce(TEAM, 0, 1, (decision.RosterLink(ENTRY_FRAME, (VOTE_FRAME,)),)),
    decision.Snapshot(
        ENTRY_FRAME,
        (VOTE_FRAME,),
        (decision.RosterLink(ENTRY_FRAME, (VOTE_FRAME,)),),
        ENTRY_FRAME,
        (VOTE_FRAME,),
        b"state",
    ),
    decision.RosterLink(ENTRY_FRAME, (VOTE_FRAME,)),
    team.Call(TEAM, "analyst", ("stats.outliers",), "How are my devices doing?", WALL + 600, (TASK,)),
    team.BidFrame(envelope.seal(ALICE, NETWORK, Kind.BID, BID)),
    team.Decline(TEAM, "analyst", "not-allowed"),
    ROSTER,
    team.Invitation(codec.encode(ROSTER)),
    team.InviteFrame(TEAM, envelope.seal(ALICE, NETWORK, Kind.INVITE, INVITE)),
    team.Founding(envelope.seal(ALICE, NETWORK, Kind.DECISION, FOUNDING)),
    team.Joined(TEAM),
    FOUND,
    step.Elect(),
    step.Discuss(BOB.node, "writer", prompt="What do you need?"),
    step.Hear(1, "The outliers."),
    step.Assign("async", (SPEC,)),
    step.Await((TASK,), "all", WALL + 300),
    step.Resume("all are there"),
    step.Reassign(TASK, 2, ALICE.node, "analyst", "its worker was lost"),
    step.Outcome(TASK, 1, "succeeded", codec.encode({"text.report": "..."}), (BLOB,), "A report.", spent=SPENT),
    step.Cancel((TASK,), "asked to"),
    step.Conclude(
        "done",
        "All is well but one.",
        (TASK,),
        (step.Evidence(TASK, "A report."),),
        (step.Credit(BOB.node, "writer", "text.report", "succeeded"),),
        spending.Spent(2_400, 31_000, 2),
    ),
    step.Admit(codec.encode(ROSTER), envelope.seal(ALICE, NETWORK, Kind.INVITE, INVITE)),
    step.Promote(BOB.node),
    step.Remove(BOB.node, 7, "asked to"),
    step.Checkpoint(512, HASH, 0, HASH, 1),
    step.Spend(spending.Spent(900, 1_000, 1)),
    team.Report(TEAM, TASK, 1, "running", 40, "half way", spent=SPENT),
    team.Said(TEAM, 1, "The outliers."),
    team.LostLinks(TEAM, (BOB.node,)),
    team.Wish(TEAM, "cancel", (TASK,), "asked to"),
    transcript.Start(NETWORK, TEAM, ALICE.node, WALL + 9),
    transcript.Decided(ENTRY_FRAME),
    transcript.Line(envelope.seal(ALICE, NETWORK, Kind.LOG, LINE)),
    transcript.Forked(*(envelope.seal(ALICE, NETWORK, Kind.LOG, line) for line in (LINE, codec.replace(LINE, at=0)))),
    transcript.State(b"part", True),
    transcript.Absent("lines", BOB.node, 1, 3),
    transcript.Piece(HASH, 0, b"piece"),
    transcript.End(envelope.seal(ALICE, NETWORK, *SIGNED["the seal of a transcript"])),
)
