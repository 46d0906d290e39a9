"""Planted faults of the team channel: each is one plausible mistake, and must be caught by the rules beside it."""

import msgspec
import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.gossip import transcript
from ioa_p2p.gossip.blobs import Blobs, Fetch
from ioa_p2p.gossip.channel import Channel
from ioa_p2p.gossip.gaps import Gaps
from ioa_p2p.gossip.log import Chain, Judgement
from ioa_p2p.gossip.order import Order
from ioa_p2p.gossip.reach import Reach
from ioa_p2p.gossip.repair import Repair, span
from ioa_p2p.wire import limits
from ioa_p2p.wire.frames import Frame
from ioa_p2p.wire.gossip import BlobNone, BlobPiece, BlobWant, Entries, Entry, Manifest, Want
from tests.gossip.team import TEAM
from tests.sim.scenario import Mutant


def no_signature_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(envelope, "check", lambda frame, network: None)


def no_hash_link(patch: pytest.MonkeyPatch) -> None:
    """Numbers are enough."""
    judge = Chain.judge

    def blind(chain: Chain, entry: Entry, digest: bytes) -> Judgement:
        return Judgement.NEXT if entry.seq == chain.head + 1 else judge(chain, entry, digest)

    patch.setattr(Chain, "judge", blind)


def no_fork_freeze(patch: pytest.MonkeyPatch) -> None:
    """The second history is dropped, the first goes on."""
    patch.setattr(Channel, "_freeze", lambda *_: [])


def fork_kept_secret(patch: pytest.MonkeyPatch) -> None:
    """Who sees two histories freezes, and gives nobody the proof."""
    freeze, answer = Channel._freeze, Channel.frontier

    def silent(effects: list[Effect]) -> list[Effect]:
        return [effect for effect in effects if not (isinstance(effect, Send) and isinstance(effect.message, Entries))]

    patch.setattr(Channel, "_freeze", lambda *args: silent(freeze(*args)))
    patch.setattr(Channel, "frontier", lambda *args: silent(answer(*args)))


def chains_only_in_memory(patch: pytest.MonkeyPatch) -> None:
    """What was heard is forgotten at a restart, as a seen-cache would."""
    patch.setattr(Chain, "load", lambda chain: iter(()))


def copies_not_known(patch: pytest.MonkeyPatch) -> None:
    """A copy of what is held is taken for the next entry."""
    judge = Chain.judge

    def forgetful(chain: Chain, entry: Entry, digest: bytes) -> Judgement:
        found = judge(chain, entry, digest)
        return Judgement.NEXT if found is Judgement.KNOWN else found

    patch.setattr(Chain, "judge", forgetful)


def strangers_heard(patch: pytest.MonkeyPatch) -> None:
    """An author without a chain gets one."""
    accept = Channel.accept

    def open_door(channel: Channel, now: Now, peer: bytes, frame: Frame, entry: Entry) -> list[Effect]:
        channel._chains.setdefault(entry.node, Chain(TEAM, entry.node, channel._rows))
        return accept(channel, now, peer, frame, entry)

    patch.setattr(Channel, "accept", open_door)


def no_causal_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Order, "_has", lambda order, author, seq: True)


def no_frontier_on_connect(patch: pytest.MonkeyPatch) -> None:
    relink = Channel.relink
    patch.setattr(Channel, "relink", lambda *args: relink(*args) and [])


def no_frontier_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Channel, "_tell_later", lambda channel, now: [])


def no_relay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reach, "relays", lambda reach, author, seq, source: [])


def wants_never_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "CHAT_ANSWER_S", 10_000.0)
    patch.setattr(limits, "CHAT_RANGE_S_MAX", 10_000.0)


def deaf_pushed_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits, "CHAT_UNANSWERED_MAX", 10**9)


def pieces_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Whatever comes for a piece is kept; and one giver sends nonsense."""
    check, want = Fetch.check, Blobs.want

    def trusting(fetch: Fetch, piece: int, data: bytes) -> Manifest:
        return check(fetch, piece, data) if piece < 0 or fetch.manifest is None else fetch.manifest

    def lying(blobs: Blobs, peer: bytes, message: BlobWant) -> list[Effect]:
        effects = want(blobs, peer, message)
        return effects if message.piece < 0 else [Send(effect.to, _spoiled(effect.message)) for effect in effects]

    patch.setattr(Fetch, "check", trusting)
    patch.setattr(Blobs, "want", lying)


def _spoiled(message: BlobPiece | BlobNone) -> BlobPiece | BlobNone:
    if isinstance(message, BlobNone):
        return message
    return msgspec.structs.replace(message, data=bytes(len(message.data)))


def fetch_waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A piece that got lost is never asked for again."""
    patch.setattr(limits, "BLOB_ANSWER_S", 10_000.0)


def asked_of_two_at_once(patch: pytest.MonkeyPatch) -> None:
    """Whoever holds more is asked for the same range."""

    def greedy(channel: Channel, now: Now) -> list[Effect]:
        holders = [(author, chain, channel._holders(author, chain)) for author, chain in channel._chains.items()]
        return [
            Send(peer, Want(channel.team, author, *span(chain, seq)))
            for author, chain, held in holders
            for peer, seq in held.items()
        ]

    patch.setattr(Channel, "_pull", greedy)


def pulled_lines_passed_on_whole(patch: pytest.MonkeyPatch) -> None:
    """What one member catches up on is pushed to the others that catch up."""
    patch.setattr(Repair, "is_answer", lambda repair, boot, author, seq, peer: False)


def gaps_wait_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What nobody has keeps back all that its author said after it."""
    patch.setattr(Gaps, "overdue", lambda gaps, boot: [])
    patch.setattr(Gaps, "next_due", None)


def gaps_not_asked_for_again(patch: pytest.MonkeyPatch) -> None:
    """Once given up, for ever given up."""
    patch.setattr(Channel, "_want_hole", lambda *_: [])


def gaps_met_at_once(patch: pytest.MonkeyPatch) -> None:
    """Whoever hears too early an entry does not wait for those before it."""
    patch.setattr(limits, "CHAT_GAP_S", 0.05)


def cut_ignored(patch: pytest.MonkeyPatch) -> None:
    """Who was removed may say nothing itself, but others pass on what it said later."""
    patch.setattr(Chain, "up_to_cut", lambda chain, seq: seq)
    patch.setattr(Chain, "end", property(lambda chain: chain.frozen))


def cut_forgotten(patch: pytest.MonkeyPatch) -> None:
    """By a restart."""
    patch.setattr(transcript, "cuts", lambda rows, team: {})


def lines_of_who_left_dropped(patch: pytest.MonkeyPatch) -> None:
    """Its chain goes with it, as if it had never spoken."""
    chains_of, change = transcript.chains_of, Channel.change
    patch.setattr(transcript, "chains_of", lambda rows, team, members, cuts: chains_of(rows, team, members, {}))
    patch.setattr(
        Channel, "change", lambda channel, now, members, cuts, links: change(channel, now, members, {}, links)
    )


MUTANTS = (
    Mutant("no signature check", no_signature_check, frozenset({"C1", "C3", "C5"})),
    Mutant("no hash link", no_hash_link, frozenset({"C5"})),
    Mutant("no fork freeze", no_fork_freeze, frozenset({"C5"})),
    Mutant("fork kept secret", fork_kept_secret, frozenset({"C5"})),
    Mutant("chains only in memory", chains_only_in_memory, frozenset({"C2", "C3"})),
    Mutant("copies not known", copies_not_known, frozenset({"C2"})),
    Mutant("strangers heard", strangers_heard, frozenset({"C1"})),
    Mutant("no causal order", no_causal_order, frozenset({"C4"})),
    Mutant("no frontier on connect", no_frontier_on_connect, frozenset({"L3"})),
    Mutant("no frontier by the clock", no_frontier_by_the_clock, frozenset({"L3"})),
    Mutant("no relay", no_relay, frozenset({"L3"})),
    Mutant("wants never repeated", wants_never_repeated, frozenset({"L3"})),
    Mutant("asked of two at once", asked_of_two_at_once, frozenset({"R1"})),
    Mutant("pulled lines passed on whole", pulled_lines_passed_on_whole, frozenset({"R1"})),
    Mutant("gaps wait for ever", gaps_wait_for_ever, frozenset({"L3"})),
    Mutant("gaps not asked for again", gaps_not_asked_for_again, frozenset({"L3"})),
    Mutant("cut ignored", cut_ignored, frozenset({"I11"})),
    Mutant("cut forgotten", cut_forgotten, frozenset({"C4", "I11"})),
    Mutant("lines of who left dropped", lines_of_who_left_dropped, frozenset({"C4", "I11"})),
    Mutant("gaps met at once", gaps_met_at_once, frozenset({"C4", "L3"})),
    Mutant("deaf pushed for ever", deaf_pushed_for_ever, frozenset({"C6"})),
    Mutant("pieces not checked", pieces_not_checked, frozenset({"L3"})),
    Mutant("fetch waits for ever", fetch_waits_for_ever, frozenset({"L3"})),
)
