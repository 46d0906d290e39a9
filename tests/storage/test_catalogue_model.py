"""Hypothesis drives the directory and a naive model of it with the same news; they must never differ."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ioa_p2p.storage.catalogue import Catalogue
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.records import AgentRecord, Card, Skill
from ioa_p2p.wire.words import words
from tests.storage.agents import WALL, card, frame_of, node, record_of

RECORDS_MAX = 4
WORDS = ("red", "green", "图表")
CARDS = tuple(
    card(name, text, Skill(skill, outputs=(out,)))
    for name, text, skill, out in [
        ("one", "red green", "a.b", "t"),
        ("one", "green 图表", "a.c", "u"),
        ("two", "red 图表", "a.b", "u"),
        ("three", "", "d", "t"),
    ]
)
VECTORS = (None, bytes([1, 0]), bytes([0, 1]), bytes([255, 3]))
KEYS = ("skill:a", "skill:a.b", "out:t", "out:u", "skill:none")


@dataclass
class Row:
    """What the model knows of one agent."""

    record: AgentRecord
    frame: bytes
    heard: float
    until: float
    trust: int
    card: Card | None = None
    vector: bytes | None = None


class Model(RuleBasedStateMachine):
    """Time moves on by rules; every put is of a record issued some time before it is heard."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "directory.db"
        self.catalogue = Catalogue(self.path, RECORDS_MAX)
        self.rows: dict[tuple[bytes, str], Row] = {}
        self.now = WALL

    def teardown(self) -> None:
        if hasattr(self, "catalogue"):
            self.catalogue.close()
            self.folder.cleanup()

    # -- what happens

    @rule(
        number=st.integers(0, 2),
        card=st.sampled_from(CARDS),
        seq=st.integers(1, 4),
        salt=st.integers(0, 1),
        age=st.sampled_from([0, 50, 650]),
        gone=st.booleans(),
        trust=st.integers(0, 1),
    )
    def hear(self, number: int, card: Card, seq: int, salt: int, age: int, gone: bool, trust: int) -> None:
        self.now += 1
        record = record_of(number, card, seq, self.now - age, ttl=60, gone=gone)
        frame = frame_of(record, salt)
        self.catalogue.put(frame, record, self.now, trust)
        self._hear(record, frame, trust)
        self._settle()

    @rule(card=st.sampled_from(CARDS), vector=st.sampled_from(VECTORS))
    def tell(self, card: Card, vector: bytes | None) -> None:
        encoded = codec.encode(card)
        self.catalogue.put_card(ids.blake(encoded), encoded, vector, "m")
        for row in self.rows.values():
            if row.record.card == ids.blake(encoded) and not row.record.gone:
                row.card, row.vector = card, vector or row.vector
        self._settle()

    @rule(number=st.integers(0, 2), name=st.sampled_from(["one", "two"]))
    def forget(self, number: int, name: str) -> None:
        self.catalogue.forget(node(number), name)
        self.rows.pop((node(number), name), None)
        self._settle()

    @rule(seconds=st.sampled_from([1, 20, 61]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def expire(self) -> None:
        self.catalogue.expire(self.now)
        self._settle()

    @rule()
    def restart(self) -> None:
        self.catalogue.close()
        self.catalogue = Catalogue(self.path, RECORDS_MAX)
        self.catalogue.expire(self.now)
        self._settle()

    # -- the model

    def _hear(self, record: AgentRecord, frame: bytes, trust: int) -> None:
        agent = record.node, record.agent
        old, until = self.rows.get(agent), min(self.now + 60, record.issued + 60 + limits.CLOCK_SKEW_S)
        if old is not None and frame == old.frame:
            old.trust = trust
            return
        if old is not None and record.seq == old.record.seq:
            if ids.blake(frame) > ids.blake(old.frame):
                return
            until = min(until, old.until)
        elif old is not None and record.seq < old.record.seq:
            return
        twins = [row for row in self.rows.values() if row.record.card == record.card and row.card is not None]
        new = self.rows[agent] = Row(record, frame, self.now, until, trust)
        if twins and not record.gone:
            new.card = twins[0].card
            new.vector = (
                old.vector
                if old in twins and old is not None
                else next((row.vector for row in twins if row.vector is not None), None)
            )

    def _settle(self) -> None:
        self.rows = {agent: row for agent, row in self.rows.items() if row.until > self.now}
        by_worth = sorted(self.rows.items(), key=lambda item: (item[1].trust, item[1].heard))
        self.rows = dict(by_worth[max(0, len(by_worth) - RECORDS_MAX) :])

    def alive(self) -> list[Row]:
        return [row for row in self.rows.values() if row.until > self.now and not row.record.gone]

    # -- they never differ

    @invariant()
    def the_same_agents_are_known(self) -> None:
        if not hasattr(self, "catalogue"):
            return
        found = self.catalogue.search([], None, "", 99, self.now)
        told = {match.known.frame: (match.known.card, match.known.heard_wall) for match in found}
        assert told == {row.frame: (row.card, row.heard) for row in self.alive()}

    @invariant()
    def each_word_finds_those_whose_texts_hold_it(self) -> None:
        if not hasattr(self, "catalogue"):
            return
        for word in WORDS:
            found = {match.known.frame for match in self.catalogue.search([word], None, "", 99, self.now)}
            assert found == {row.frame for row in self.alive() if row.card and word in words(row.card.description)}

    @invariant()
    def each_filter_passes_those_that_have_it(self) -> None:
        if not hasattr(self, "catalogue"):
            return
        for key in KEYS:
            found = {match.known.frame for match in self.catalogue.search([], None, "", 99, self.now, [key])}
            assert found == {row.frame for row in self.alive() if key in facts(row)}

    @invariant()
    def vectors_stay_with_their_cards(self) -> None:
        if not hasattr(self, "catalogue"):
            return
        found = self.catalogue.search([], bytes([1, 0]), "m", 99, self.now)
        near = {match.known.frame for match in found if match.dense > 0.9}
        assert near == {row.frame for row in self.alive() if row.vector == bytes([1, 0])}


def facts(row: Row) -> set[str]:
    names = row.record.skills
    outs = {f"out:{out}" for skill in row.card.skills for out in skill.outputs} if row.card else set[str]()
    return outs | {f"skill:{name}" for name in names} | {f"skill:{name.split('.')[0]}" for name in names}


class TestModel(Model.TestCase):
    settings = settings(max_examples=25, stateful_step_count=25)
