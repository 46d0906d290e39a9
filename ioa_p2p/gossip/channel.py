"""One team's channel: every member's chain, pushed when it grows and repaired when a frontier shows a hole.

    say ──> own chain ── push ──> members with a live link        30 s, connect, wake ── Frontier ──> members
    frame ──> judge ──> signature ──> chain ──> causal order ──> Said            └── Want <── what they miss
                 │                     └── relay to members that have no link with the author
                 └── copies end here, before any signature is checked

Nobody waits for anybody: a member whose acknowledgements lag is "behind", gets no more pushes, and pulls later.
"""

import random
from collections import Counter
from collections.abc import Collection, Mapping

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Rows, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip import frontier, transcript
from ioa_p2p.gossip.doubt import Doubt
from ioa_p2p.gossip.events import Behind, Delivered, Forked, Gap, Said
from ioa_p2p.gossip.frontier import Marks
from ioa_p2p.gossip.gaps import Gaps, runs
from ioa_p2p.gossip.log import Chain, Judgement
from ioa_p2p.gossip.reach import Reach
from ioa_p2p.gossip.repair import Repair
from ioa_p2p.wire import limits
from ioa_p2p.wire.frames import Frame, Kind
from ioa_p2p.wire.gossip import Entries, Entry, Frontier, Head, Held, Served, Want, batches
from ioa_p2p.wire.ids import blake


class Channel:
    """State of one team on one node. Every method returns effects; none changes state before it raises."""

    def __init__(
        self,
        team: bytes,
        members: Collection[bytes],
        key: NodeKey,
        network: bytes,
        rows: Rows,
        rng: random.Random,
        cuts: Mapping[bytes, int],
    ) -> None:
        """cuts: who was removed, and the last of its lines that counts; these are still pulled of others."""
        self.team = team
        self.members = frozenset(members)
        self.decisions = b""
        self._me, self._key, self._network, self._rows, self._rng = key.node, key, network, rows, rng
        self._chains = transcript.chains_of(rows, team, members, cuts)
        self._order = transcript.order_of(rows, team, self._chains)
        self._doubt = Doubt()
        self._marks = Marks()
        self._reach = Reach(self._me, self._marks, rng)
        self._repair = Repair(rng)
        self._gaps = Gaps(self._chains)
        self._covered: dict[bytes, int] = {}
        self._past: Counter[bytes] = Counter()  # our own lines from before this start, by 8 B of their hash
        self._owed: dict[bytes, dict[tuple[bytes, bytes], None]] = {}
        self._source: dict[bytes, bytes] = {}
        self._pulled = False  # whether the entry being taken in answers a want of ours
        self._told: dict[bytes, float] = {}
        self._armed: dict[str, float] = {}

    @property
    def gaps(self) -> list[tuple[bytes, int, int]]:
        """(author, first, last): lines that count as met though they are not here."""
        holes = [(author, *run) for author, chain in self._chains.items() for run in runs(chain.holes)]
        return [*holes, *self._unseen({})]

    def _unseen(self, before: dict[bytes, int]) -> list[tuple[bytes, int, int]]:
        """Lines that others had read, given up beyond what had been given up `before`."""
        shown = self._order.shown
        given_up = [
            (author, max(shown.get(author, 0), before.get(author, 0)) + 1, seq)
            for author, seq in self._order.given_up.items()
        ]
        return [(author, first, last) for author, first, last in given_up if first <= last]

    # -- opening, members, links

    def seq(self, author: bytes) -> int:
        chain = self._chains.get(author)
        return chain.head if chain is not None else 0

    def open(self, now: Now, links: Collection[bytes]) -> list[Effect]:
        """Read the chains back, oldest first; what waited for others goes on waiting. Greet linked members."""
        self._load(now, self._chains)
        return [*self._arm_gaps(), *self._tell_later(now), *self.relink(now, links)]

    def change(
        self, now: Now, members: Collection[bytes], cuts: Mapping[bytes, int], links: Collection[bytes]
    ) -> list[Effect]:
        """Another roster: newcomers get a chain. cuts: fresh ones; the chains of these end there, and those of others
        who left count no more."""
        self.members = frozenset(members)
        chains = transcript.chains_of(self._rows, self.team, members, cuts)
        fresh = [author for author in chains if author not in self._chains]
        for author, chain in list(self._chains.items()):
            if author in cuts:
                chain.end_at(cuts[author])
                self._order.end(author, chain.end)
            elif author not in members and chain.cut is None:
                del self._chains[author]
        self._chains.update((author, chains[author]) for author in fresh)
        self._load(now, fresh)
        return [*self._show(self._order.release()), *self._arm_gaps(), *self.relink(now, links)]

    def relink(self, now: Now, links: Collection[bytes]) -> list[Effect]:
        """The live links changed: our frontier goes to the fresh ones now, to the others soon."""
        fresh, gone = self._reach.relink([author for author in self._chains if author in self.members], links)
        for member in gone:
            self._repair.lose(member)
            self._owed.pop(member, None)
        if not fresh and not gone:
            return []
        return [*self._tell(now, fresh), *self._arm("tell", now.boot + limits.CHAT_TELL_AGAIN_S), *self._pull(now)]

    def wake(self, now: Now) -> list[Effect]:
        """After a sleep: compare frontiers at once."""
        return self._tell(now, self._reach.linked)

    def doubt(self) -> None:
        """Our disk forgot some of this team, perhaps lines of ours."""
        self._doubt.raised = True

    def _load(self, now: Now, authors: Collection[bytes]) -> None:
        for entry in transcript.replay(now.boot, {author: self._chains[author] for author in authors}, self._order):
            if entry.node == self._me:
                self._covered.update(entry.seen)
                self._past[blake(entry.body, 8)] += 1

    # -- saying

    def recalls(self, body: bytes) -> bool:
        """Whether we said this before our start; each such line is recalled once."""
        words = blake(body, 8)
        found = self._past[words] > 0
        self._past[words] -= found
        return found

    def say(self, now: Now, kind: str, body: bytes) -> list[Effect]:
        """Append to our chain and push. Raises UsageError as `commands.Say` says."""
        chain = self._may_say(kind, body)
        entry = Entry(self._me, self.team, 0, chain.head + 1, chain.previous, self._news(), kind, body, int(now.wall))
        raw = envelope.seal(self._key, self._network, Kind.LOG, entry)
        self._covered.update(entry.seen)
        save = chain.append(raw, blake(raw))
        return [save, *self._show(self._order.add(now.boot, entry)), *self._push(entry.seq, raw)]

    def _may_say(self, kind: str, body: bytes) -> Chain:
        chain = self._chains.get(self._me)
        if chain is None:
            raise UsageError("not-a-member", "this node is no member of the team", "ask the team to take it in")
        if len(body) > limits.CHAT_BODY_BYTES_MAX or len(kind) > limits.CHAT_KIND_BYTES_MAX:
            raise UsageError("line-too-large", f"a line of {len(body)} bytes", "send it as a blob and say its hash")
        if chain.frozen is not None:
            raise UsageError("chain-forked", "this node's chain has two histories", "form the team anew")
        if chain.head < chain.lost:
            raise UsageError("chain-damaged", "own lines are missing on disk", "wait until a member sent them back")
        if chain.is_full:
            said = f"the team's talk takes no more of ours: {chain.head} lines, {chain.bytes} bytes"
            raise UsageError("talk-full", said, "form a new team")
        if self._doubt.lasts(chain.head, self.members - {self._me}):
            raise UsageError("chain-damaged", "own lines may be missing on disk", "wait until the members were heard")
        return chain

    def _news(self) -> tuple[tuple[bytes, int], ...]:
        """How far we have read the others, where that moved since our last entry."""
        shown, covered = self._order.shown, self._covered
        moved = [(author, seq) for author, seq in shown.items() if author != self._me and seq > covered.get(author, 0)]
        return tuple(moved[: limits.CHAT_MEMBERS_MAX])

    def _push(self, seq: int, raw: bytes) -> list[Effect]:
        whole, digest = self._reach.pushes(seq)
        message, mark = Entries(raw), Held(self.team, ((self._me, self._me, seq),))
        effects: list[Effect] = [Send(member, message) for member in whole]
        effects += [Send(member, mark) for member in digest]
        if len(whole) + len(digest) < len(self._reach.linked):
            effects += self._fall_behind(seq)
        return effects

    def _fall_behind(self, seq: int) -> list[Effect]:
        lagging = [member for member in self._reach.linked if self._reach.lags(member, seq)]
        fresh = [member for member in lagging if member not in self._reach.behind]
        self._reach.behind.update(fresh)
        return [Emit(Behind(self.team, member, True)) for member in fresh]

    # -- accepting

    def accept(self, now: Now, peer: bytes, frame: Frame, entry: Entry) -> list[Effect]:
        """An entry that `peer` sent, its author's or relayed. Raises PeerError: 'not-a-member', 'bad-signature'."""
        author = entry.node
        chain = self._chains.get(author)
        if chain is None:
            raise PeerError("not-a-member", "an entry of somebody who is no member")
        digest = blake(frame.raw)
        judgement = chain.judge(entry, digest)
        if judgement is Judgement.IGNORED:
            return []
        if judgement is not Judgement.KNOWN:
            envelope.check(frame, self._network)
        self._marks.rise(author, peer, entry.seq)
        owe = self._owe(now, author if author in self._reach.linked else peer, self._me, author)
        if judgement is Judgement.KNOWN:
            return owe
        self._source[author] = peer
        self._pulled = self._repair.is_answer(now.boot, author, entry.seq, peer)
        return self._take(now, chain, judgement, frame.raw, digest, entry) + owe

    def _take(
        self, now: Now, chain: Chain, judgement: Judgement, raw: bytes, digest: bytes, entry: Entry
    ) -> list[Effect]:
        """A verified entry that is new to us."""
        effects: list[Effect] = []
        for author, seq in entry.seen:
            effects += self._note(now, entry.node, author, seq)
        if judgement is Judgement.FORK:
            return effects + self._freeze(chain, raw, entry)
        if judgement is Judgement.AHEAD:
            chain.keep_ahead(raw, digest, entry)
            self._gaps.look(now.boot, entry.node)
            return [*effects, *self._arm("repair", now.boot + limits.CHAT_REPAIR_S), *self._arm_gaps()]
        if judgement is Judgement.LATE:
            late = Emit(Said(self.team, entry.node, entry.seq, entry, late=True))
            return [*effects, chain.fill(raw, digest, entry), late]
        if self._order.waiting(entry.node) >= limits.CHAT_WAITING_MAX:
            return effects + self._arm("repair", now.boot + limits.CHAT_ANSWER_S)
        effects += self._grow(now, chain, raw, digest, entry)
        return effects + self._grow_on(now, entry.node, chain)

    def _grow_on(self, now: Now, author: bytes, chain: Chain) -> list[Effect]:
        """With the entries that had come too early."""
        effects: list[Effect] = []
        while (ahead := chain.take_ahead()) is not None:
            if ahead[2].previous != chain.previous:
                return effects + self._freeze(chain, ahead[0], ahead[2])
            effects += self._grow(now, chain, *ahead)
        self._gaps.look(now.boot, author, grown=True)
        return effects + self._arm_gaps()

    def _grow(self, now: Now, chain: Chain, raw: bytes, digest: bytes, entry: Entry) -> list[Effect]:
        """The next entry of a chain: durable, shown in its turn, passed on to whom its author cannot reach."""
        effects: list[Effect] = [chain.append(raw, digest), *self._show(self._order.add(now.boot, entry))]
        return effects + self._relay(now, raw, entry)

    def _relay(self, now: Now, raw: bytes, entry: Entry) -> list[Effect]:
        """To members that its author cannot reach. What we had to pull they are told of only: they may be pulling
        the same from another, and ask us if not."""
        relays = self._reach.relays(entry.node, entry.seq, self._source[entry.node])
        if self._pulled:
            return [effect for member in relays for effect in self._owe(now, member, self._me, entry.node)]
        message = Entries(raw)
        return [Send(member, message) for member in relays]

    def _show(self, entries: list[Entry]) -> list[Effect]:
        team, is_late = self.team, self._order.is_late
        return [Emit(Said(team, entry.node, entry.seq, entry, is_late(entry))) for entry in entries]

    def _freeze(self, chain: Chain, raw: bytes, entry: Entry) -> list[Effect]:
        """Two histories signed by one author: keep what is common, and give everyone the proof."""
        save = chain.freeze(chain.fork_seq(entry), raw)
        self._order.end(entry.node, chain.counts_to)
        forked = Emit(Forked(self.team, entry.node, chain.counts_to))
        proof: list[Effect] = [Send(member, part) for member in self._reach.linked for part in batches(chain.evidence)]
        return [save, *proof, forked, *self._show(self._order.release())]

    # -- frontiers, wants, acknowledgements

    def frontier(self, now: Now, peer: bytes, message: Frontier) -> list[Effect]:
        """What `peer` holds: pull what it has more, tell it if it has less, ask for proof where it differs."""
        self._reach.hear(peer, frozenset(head.author for head in message.heads if head.linked))
        self._repair.hear(peer)
        self._doubt.hear(peer, next((head.seq for head in message.heads if head.author == self._me), 0))
        effects: list[Effect] = []
        for head in message.heads:
            chain = self._chains.get(head.author)
            if chain is None or not head.seq:
                continue
            effects += self._note(now, peer, head.author, head.seq)
            effects += self._want_hole(peer, head, chain)
            if frontier.differs(head, chain):
                effects.append(Send(peer, Want(self.team, head.author, head.seq, head.seq)))
            elif chain.frozen is not None and head.seq > chain.frozen:
                effects += [Send(peer, part) for part in batches(chain.evidence)]
        if frontier.lacks(message.heads, self._chains):
            effects += self._answer(now, peer)
        return effects + self._pull(now)

    def _want_hole(self, peer: bytes, head: Head, chain: Chain) -> list[Effect]:
        """Ask who may have it for one gap of ours; another one with the next frontier."""
        known = [run for run in runs(chain.holes) if run[1] <= head.seq]
        return [Send(peer, Want(self.team, head.author, *self._rng.choice(known)))] if known else []

    def want(self, peer: bytes, message: Want) -> list[Effect]:
        """Serve a range, as far as one answer goes, and mark its end."""
        chain = self._chains.get(message.author)
        if chain is None:
            raise PeerError("not-a-member", "a want for somebody who is no member")
        last = min(message.last, message.first + limits.CHAT_WANT_ENTRIES_MAX - 1)
        parts: list[Effect] = []
        sent_bytes = 0
        for part in batches(chain.frames(message.first, last)):
            parts.append(Send(peer, part))
            sent_bytes += len(part.raw)
            if sent_bytes >= limits.CHAT_WANT_BYTES_MAX:
                break
        return [*parts, Send(peer, Served(self.team, message.author, message.first, chain.counts_to))]

    def served(self, now: Now, peer: bytes, message: Served) -> list[Effect]:
        """An answer to a want of ours is complete: go on with the next range."""
        chain = self._chains.get(message.author)
        if chain is None:
            return []
        effects = self._note(now, peer, message.author, message.held)
        ended = self._repair.end(now.boot, message.author, chain, peer, message.first)
        return [*effects, *self._pull(now)] if ended else effects

    def held(self, now: Now, peer: bytes, message: Held) -> list[Effect]:
        """Acknowledgements, or a digest. Hearsay beyond what we hold is ignored."""
        effects: list[Effect] = []
        for member, author, seq in message.marks:
            chain = self._chains.get(author)
            if chain is None or member not in self.members or (member != peer and seq > chain.head):
                continue
            effects += self._note(now, member, author, seq)
            if member == peer and seq > chain.counts_to:
                effects += self._arm("repair", now.boot + limits.CHAT_REPAIR_S)
        return effects

    def _note(self, now: Now, member: bytes, author: bytes, seq: int) -> list[Effect]:
        """`member` holds `author`'s chain up to `seq`. News of our own lines is told; news of others' goes
        towards their author if the two have no link."""
        if author not in self._chains or not self._marks.rise(author, member, seq):
            return []
        if author == self._me:
            return self._delivered(now, member, min(seq, self._chains[author].head))
        if member == author or self._reach.meets(member, author):
            return []
        towards = author if author in self._reach.linked else self._source.get(author)
        return self._owe(now, towards, member, author) if towards not in (None, member) else []

    def _delivered(self, now: Now, member: bytes, seq: int) -> list[Effect]:
        if not seq or member == self._me:
            return []
        count = len(self.members.intersection(self._marks.holders(self._me, seq)) - {self._me})
        effects: list[Effect] = [Emit(Delivered(self.team, seq, count, len(self.members) - 1))]
        if member in self._reach.behind and not self._reach.lags(member, self._chains[self._me].head):
            self._reach.behind.discard(member)
            effects += [Emit(Behind(self.team, member, False)), *self._tell(now, [member])]
        return effects

    def _owe(self, now: Now, target: bytes | None, member: bytes, author: bytes) -> list[Effect]:
        """Tell `target` soon how far `member` holds `author`'s chain."""
        if target is None:
            return []
        owed = self._owed.get(target)
        if owed is None:
            owed = self._owed[target] = {}
        owed[member, author] = None
        return self._arm("held", now.boot + limits.CHAT_HELD_S)

    # -- timers

    def handle_timer(self, now: Now, what: str) -> list[Effect]:
        """what: "tell", "repair", "held" or "gaps"."""
        self._armed.pop(what, None)
        if what == "tell":
            return [*self._tell(now, self._reach.linked), *self._tell_later(now)]
        if what == "repair":
            return self._pull(now)
        return self._acknowledge() if what == "held" else self._give_up(now)

    def _tell(self, now: Now, members: Collection[bytes]) -> list[Effect]:
        message = Frontier(self.team, frontier.heads(self._chains, self._reach.linked), self.decisions)
        self._told.update((member, now.boot) for member in members)
        return [Send(member, message) for member in members]

    def _tell_later(self, now: Now) -> list[Effect]:
        return self._arm("tell", now.boot + limits.CHAT_TELL_S * self._rng.uniform(0.9, 1.1))

    def _answer(self, now: Now, peer: bytes) -> list[Effect]:
        """Our frontier for one that lacks something; a moment later if it was told just now."""
        due = self._told.get(peer, now.boot - limits.CHAT_TELL_AGAIN_S) + limits.CHAT_TELL_AGAIN_S
        return self._tell(now, [peer]) if due <= now.boot else self._arm("tell", due)

    def _pull(self, now: Now) -> list[Effect]:
        """Ask for every missing range that is not under way."""
        self._repair.settle(self._chains)
        effects: list[Effect] = []
        for author, chain in self._chains.items():
            asked = self._repair.ask(now.boot, author, chain, self._holders(author, chain))
            if asked is not None:
                peer, first, last = asked
                effects.append(Send(peer, Want(self.team, author, first, last)))
        due = [at for at in (self._repair.next_due, self._look_again(now)) if at is not None]
        return [*effects, *self._arm("repair", min(due))] if due else effects

    def _look_again(self, now: Now) -> float | None:
        """While lines wait for others', their authors may be held back, so look again soon."""
        return None if self._order.next_due is None else now.boot + limits.CHAT_ANSWER_S

    def _holders(self, author: bytes, chain: Chain) -> dict[bytes, int]:
        """Linked members that hold more of a chain than we do and could take, and how far."""
        held_back = self._order.waiting(author) > limits.CHAT_WAITING_MAX // 2
        if chain.frozen is not None or chain.is_full or held_back:
            return {}
        marks = {member: chain.up_to_cut(self._marks.of(author, member)) for member in self._reach.linked}
        return {member: seq for member, seq in marks.items() if seq > chain.head}

    def _acknowledge(self) -> list[Effect]:
        effects: list[Effect] = []
        for target, owed in self._owed.items():
            marks = ((member, author, self._mark(member, author)) for member, author in owed if author in self._chains)
            known = tuple(mark for mark in marks if mark[2])[: limits.CHAT_MARKS_MAX]
            if known and target in self._reach.linked:
                effects.append(Send(target, Held(self.team, known)))
        self._owed.clear()
        return effects

    def _mark(self, member: bytes, author: bytes) -> int:
        return self._chains[author].counts_to if member == self._me else self._marks.of(author, member)

    def _give_up(self, now: Now) -> list[Effect]:
        """Gaps that nobody could fill for 60 s count as met, durably."""
        effects: list[Effect] = []
        for author in self._gaps.overdue(now.boot):
            effects += self._skip(now, author, self._chains[author])
        before = self._order.given_up
        shown, forced = self._order.force(now.boot)
        saves = transcript.save_forced(self.team, forced, self._order.given_up if forced else {})
        unseen = [Emit(Gap(self.team, *gap)) for gap in self._unseen(before)] if forced else []
        return [*effects, *saves, *unseen, *self._show(shown), *self._arm_gaps()]

    def _skip(self, now: Now, author: bytes, chain: Chain) -> list[Effect]:
        first = chain.head + 1
        saves = chain.skip()
        self._pulled = False
        return [*saves, Emit(Gap(self.team, author, first, chain.head)), *self._grow_on(now, author, chain)]

    def _arm_gaps(self) -> list[Effect]:
        due = [at for at in (self._order.next_due, self._gaps.next_due) if at is not None]
        return self._arm("gaps", min(due)) if due else []

    def _arm(self, what: str, at: float) -> list[Effect]:
        """Set a timer unless it is set for as early already."""
        armed = self._armed.get(what)
        if armed is not None and armed <= at:
            return []
        self._armed[what] = at
        return [SetTimer(f"{what}/{self.team.hex()}", at)]
