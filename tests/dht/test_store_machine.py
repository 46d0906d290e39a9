"""The store against a model of three owners, for any order of puts, time and repeats."""

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ioa_p2p.dht.store import Item, Store
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Verdict
from tests.dht.frames import WALL, item, later
from tests.wire.samples import ALICE, BOB, MALLORY, record

OWNERS = (ALICE, BOB, MALLORY)


class Holding(RuleBasedStateMachine):
    """The model: per owner, what should be served and until when."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(lambda item: None, random.Random(1))
        self.passed_s = 0
        self.served: dict[bytes, tuple[Item, float]] = {}

    @rule(
        owner=st.sampled_from(OWNERS),
        seq=st.integers(0, 3),
        ttl=st.sampled_from((60, 120, 600)),
        age_s=st.sampled_from((0, 30, 650)),
        variant=st.integers(0, 1),
    )
    def put(self, owner, seq: int, ttl: int, age_s: int, variant: int):
        issued = WALL + self.passed_s - age_s
        one = item(record(owner, seq=seq, ttl=ttl, issued=issued, boot=variant), owner)
        now = later(self.passed_s)
        verdict = self.store.put(now, one, b"source")
        until_s = self.passed_s + min(ttl, issued + ttl + limits.CLOCK_SKEW_S - now.wall)
        assert verdict == self.expect(one, until_s)

    def expect(self, one: Item, until_s: float) -> Verdict:
        known = self.served.get(one.slot)
        if known is not None and known[0].hash == one.hash:
            return Verdict.KNOWN
        if until_s <= self.passed_s:
            return Verdict.OLDER
        if known is not None:
            old, old_until_s = known
            if (old.body.seq, one.hash) > (one.body.seq, old.hash):
                return Verdict.OLDER
            if old.body.seq == one.body.seq:
                until_s = min(until_s, old_until_s)
        self.served[one.slot] = (one, until_s)
        return Verdict.KEPT

    @rule(seconds=st.sampled_from((1, 29, 61, 601)))
    def wait(self, seconds: int):
        self.passed_s += seconds
        self.served = {slot: kept for slot, kept in self.served.items() if kept[1] > self.passed_s}

    @rule()
    def forget(self):
        self.store.expire(later(self.passed_s))

    @invariant()
    def serves_exactly_the_newest_that_live(self):
        now = later(self.passed_s)
        alive = {held.item.slot: held.item.hash for held in self.store if held.until_s > now.boot}
        assert alive == {slot: kept[0].hash for slot, kept in self.served.items()}

    @invariant()
    def counts_what_it_holds(self):
        held = list(self.store)
        assert self.store.size_bytes == sum(len(each.item.raw) for each in held)
        assert sum(self.store._nodes.values()) == sum(self.store._sources.values()) == len(held)


TestHolding = Holding.TestCase
TestHolding.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
