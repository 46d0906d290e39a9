"""Cards of linked nodes are fetched once each, before anybody asks."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node.describing import Describing
from ioa_p2p.wire import limits

LEFT, RIGHT = b"l" * 32, b"r" * 32


class Rig:
    """Nodes with cards; what was fetched of whom, in order."""

    def __init__(self, lacking: dict[bytes, list[bytes]], fault: Exception | None = None) -> None:
        self.linked = {LEFT, RIGHT}
        self.lacking = lacking
        self.fault = fault
        self.fetched: list[tuple[bytes, bytes]] = []
        self.describing = Describing(lambda: sorted(self.linked), self._lacking, self._fetch)

    def _lacking(self, node: bytes) -> Sequence[bytes]:
        return self.lacking.get(node, [])

    async def _fetch(self, node: bytes, card_hash: bytes) -> None:
        self.fetched.append((node, card_hash))
        if self.fault is not None:
            raise self.fault


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_each_card_of_a_linked_node_is_fetched_once() -> None:
    rig = Rig({LEFT: [b"1", b"2"], RIGHT: [b"3"]})
    rig.linked.remove(RIGHT)
    for _ in range(3):
        rig.describing.look()
    await until(lambda: len(rig.fetched) == 2)
    rig.linked.add(RIGHT)
    rig.describing.look()
    await until(lambda: len(rig.fetched) == 3)
    assert rig.fetched == [(LEFT, b"1"), (LEFT, b"2"), (RIGHT, b"3")]


async def test_a_card_that_was_not_given_is_asked_for_again_with_the_next_link() -> None:
    rig = Rig({LEFT: [b"1"], RIGHT: [b"2"]})
    rig.describing.look()
    await until(lambda: len(rig.fetched) == 2)
    rig.describing.up(LEFT)
    await until(lambda: len(rig.fetched) == 3)
    assert rig.fetched[2] == (LEFT, b"1")


@pytest.mark.parametrize("fault", [UsageError("busy"), TimeoutError()])
async def test_a_node_that_does_not_answer_is_left_alone_and_the_next_one_asked(fault: Exception) -> None:
    rig = Rig({LEFT: [b"1", b"2"], RIGHT: [b"3"]}, fault)
    rig.describing.look()
    await until(lambda: len(rig.fetched) == 2)
    assert rig.fetched == [(LEFT, b"1"), (RIGHT, b"3")]


async def test_what_is_remembered_as_tried_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CARDS_TRIED_MAX", 1)
    rig = Rig({LEFT: [b"1", b"2"]})
    rig.describing.look()
    await until(lambda: len(rig.fetched) == 2)
    rig.describing.look()
    await until(lambda: len(rig.fetched) == 4)
    rig.describing.close()
