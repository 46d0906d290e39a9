"""The newest record of an agent, straight from its own node: one request where a pointer said that it is.

    FetchRecord ── FindRecord ──> the node itself ── its record, small card ──> done(direct)
                      ├── nothing there ──> RecordSearch among the holders ───> done
                      └── slow: asked once more, and the holders beside it ───> whoever has it first:
                             the node (direct), or, when it stayed silent, the holders (silent)

That the node answers proves that it lives, which no holder can say of it. docs/wire.md, "DHT". One lost datagram is
no silence. A record that says that the agent is gone, or behind a relay, ends the wait: no datagram will come.
"""

from collections.abc import Callable

from ioa_p2p.dht.calls import Call
from ioa_p2p.dht.search import Means, RecordSearch
from ioa_p2p.dht.store import Item
from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.wire.dht import Contact, FindRecord, Found
from ioa_p2p.wire.records import AgentRecord

RELAYED = "/p2p-circuit"  # in an address through a relay


class DirectRecord:
    """done(now, self) is called once. item: the newest found. direct: its node gave it. silent: it did not answer.
    asked, answers: peers, itself included. copies: how many of them gave this very record."""

    def __init__(self, means: Means, key: bytes, done: Callable[[Now, "DirectRecord"], None]) -> None:
        self.item: Item | None = None
        self.direct = False
        self.silent = False
        self.asked = 0
        self.answers = 0
        self.copies = 0
        self._means = means
        self._key = key
        self._done = done
        self._waiting = 0
        self._searching = False
        self._searched = False
        self._suspect = False
        self._heard = False
        self._open = True

    def start(self, now: Now, contact: Contact) -> None:
        """contact: where it should be."""
        self._suspect = self._means.calls.suspects.has(contact, now.boot)
        self._ask(now, contact, again=not self._suspect)

    def answered(self, now: Now, call: Call, answer: Found) -> None:
        self._heard, self.silent, self._waiting = True, False, 0
        self.answers += 1
        item = self._read(now, answer) if answer.frames else None
        if item is not None and self._open:
            self.item, self.direct, self.copies = item, True, 1
            self._end(now)
        self._search(now)
        self._settle(now)

    def slow(self, now: Now, call: Call) -> None:
        """One that was slow a moment ago is not waited for any longer."""
        if call.subject and self._open:
            self._ask(now, call.to, again=False)
        elif self._suspect:
            self._give_up(now)
        self._search(now)

    def lost(self, now: Now, call: Call) -> None:
        """Without having been slow it was never asked: too much is under way, or we slept."""
        self._waiting -= 1
        if self._waiting <= 0 and not self._heard:
            self.silent = call.slow
            self._search(now)
            self._settle(now)

    # -- how it goes

    def _ask(self, now: Now, contact: Contact, *, again: bool) -> None:
        self._waiting += 1
        self.asked += 1
        self._means.calls.ask(now, contact, FindRecord, Found, self, again, self._key)

    def _give_up(self, now: Now) -> None:
        self.silent, self._waiting = True, 0
        self._settle(now)

    def _search(self, now: Now) -> None:
        if self._open and not self._searching:
            self._searching = True
            RecordSearch(self._means, self._key, self._found).start(now)

    def _found(self, now: Now, search: RecordSearch) -> None:
        if not self._open:
            return
        self._searched = True
        self.item = search.item
        self.asked += search.lookup.calls
        self.answers += len(search.tokens)
        self.copies = search.copies
        if self._waiting > 0 and _is_past_waiting(self.item):
            self._give_up(now)
        self._settle(now)

    def _settle(self, now: Now) -> None:
        if self._searched and self._waiting <= 0:
            self._end(now)

    def _end(self, now: Now) -> None:
        if self._open:
            self._open = False
            self._done(now, self)

    def _read(self, now: Now, answer: Found) -> Item | None:
        """A wrong card spoils the record beside it: no honest node gives one."""
        try:
            item = self._means.gate.read(now, answer.frames[0], self._key)
            if answer.card and isinstance(item.body, AgentRecord):
                self._means.cards.came_along(item.body.card, answer.card)
            return item
        except PeerError as fault:
            self._means.faults[fault.code] += 1
            return None


def _is_past_waiting(item: Item | None) -> bool:
    if item is None or not isinstance(item.body, AgentRecord):
        return False
    return item.body.gone or any(RELAYED in address for address in item.body.addresses)
