"""Hypothesis drives both stores with the same calls; they must never differ."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ioa_p2p.effects import Save
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.storage.sqlite import SqliteStorage

SPACES = st.sampled_from(["log/a", "log/b", "votes", "log/a\U0010ffff", "ü"])
KEYS = st.binary(max_size=2)
SAVES = st.builds(Save, SPACES, KEYS, st.none() | st.binary(max_size=4))


class SameAsMemory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "state.sqlite"
        self.memory, self.sqlite = MemoryStorage(), SqliteStorage(self.path)

    @rule(saves=st.lists(SAVES, max_size=6))
    def commit(self, saves: list[Save]) -> None:
        self.memory.commit(saves)
        self.sqlite.commit(saves)

    @rule(space=SPACES)
    def drop(self, space: str) -> None:
        self.memory.drop(space)
        self.sqlite.drop(space)

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        self.sqlite = SqliteStorage(self.path)

    @rule(space=SPACES, start=KEYS, end=st.none() | KEYS)
    def scan(self, space: str, start: bytes, end: bytes | None) -> None:
        assert list(self.sqlite.scan(space, start, end)) == list(self.memory.scan(space, start, end))

    @rule(space=SPACES, key=KEYS)
    def get(self, space: str, key: bytes) -> None:
        assert self.sqlite.get(space, key) == self.memory.get(space, key)

    @rule(prefix=st.sampled_from(["", "log/", "log/a", "nothing"]))
    def spaces(self, prefix: str) -> None:
        assert self.sqlite.spaces(prefix) == self.memory.spaces(prefix)

    @invariant()
    def all_rows_are_equal(self) -> None:
        rows = {space: list(self.memory.scan(space)) for space in self.memory.spaces()}
        assert {space: list(self.sqlite.scan(space)) for space in self.sqlite.spaces()} == rows

    def teardown(self) -> None:
        self.sqlite.close()
        self.folder.cleanup()


TestSameAsMemory = SameAsMemory.TestCase
TestSameAsMemory.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
