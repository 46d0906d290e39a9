"""Whom a node asks to pass links on to it, and when."""

from typing import Any

import pytest

from ioa_p2p.net.ports import LinkUp, RelayDown, RelayUp
from ioa_p2p.node.relays import FEATURE, RELAYS, Relays
from ioa_p2p.wire.link import VERSION, Hello

R = [bytes([number]) * 32 for number in range(5)]


class Asked:
    """Stands in for `Links`: remembers the last wish."""

    def __init__(self) -> None:
        self.through: set[bytes] = set()

    def relay_through(self, peers: Any) -> None:
        self.through = set(peers)


class Scene:
    """A node with neighbours; `client` and `table` are what its DHT says."""

    def __init__(self, *neighbours: bytes, **link: Any) -> None:
        self.links = Asked()
        self.up = {node: _link(node, **link) for node in neighbours}
        self.client = True
        self.table = set(neighbours)
        self.changes = 0
        self.relays = Relays(
            self.links, self.up, lambda: self.client, lambda node: node in self.table, self._changed  # type: ignore[arg-type]
        )  # fmt: skip

    def _changed(self) -> None:
        self.changes += 1

    def chosen(self) -> set[bytes]:
        self.relays.choose()
        return self.links.through

    def serves(self, node: bytes) -> str:
        address = f"/ip4/11.0.0.1/tcp/1/p2p/{node[0]}/p2p-circuit"
        self.relays.on_event(RelayUp(node, address))
        return address


def _link(
    node: bytes, *, address: str = "/ip4/11.0.0.1/tcp/4001", outbound: bool = True, via: bytes | None = None,
    features: tuple[str, ...] = (FEATURE,),
) -> LinkUp:  # fmt: skip
    return LinkUp(node, Hello(VERSION, bytes(16), 1, features=features), address, outbound, via)


async def test_a_client_asks_a_few_of_its_neighbours() -> None:
    scene = Scene(*R)
    assert len(scene.chosen()) == RELAYS
    assert scene.chosen() <= set(R)


async def test_who_is_reached_by_strangers_asks_nobody() -> None:
    scene = Scene(*R)
    scene.client = False
    assert scene.chosen() == set()


async def test_no_neighbour_is_asked_that_strangers_might_not_reach_or_that_does_not_relay() -> None:
    assert Scene(*R, outbound=False).chosen() == set()
    assert Scene(*R, via=R[0]).chosen() == set()
    assert Scene(*R, features=()).chosen() == set()
    assert Scene(*R, address="/ip4/192.168.1.1/tcp/4001").chosen() == set()
    at_home = Scene(*R)
    at_home.table = set()
    assert at_home.chosen() == set()


async def test_a_relay_counts_once_it_serves_and_every_change_is_told_once() -> None:
    scene = Scene(R[0])
    scene.relays.choose()
    assert scene.relays.addresses == ()
    address = scene.serves(R[0])
    scene.serves(R[0])
    assert (scene.relays.addresses, scene.relays.serving, scene.changes) == ((address,), [R[0]], 1)
    scene.relays.on_event(RelayDown(R[0], "link lost"))
    assert (scene.relays.addresses, scene.changes) == ((), 2)


async def test_another_takes_the_place_of_one_that_refuses_at_once() -> None:
    scene = Scene(*R[:3])
    refused = next(iter(scene.chosen()))
    scene.relays.on_event(RelayDown(refused, "refused: RESERVATION_REFUSED"))
    assert scene.links.through == set(R[:3]) - {refused}
    assert scene.changes == 0


async def test_who_serves_us_stays_when_better_ones_come() -> None:
    scene = Scene(*R[:2])
    scene.relays.choose()
    for relay in R[:2]:
        scene.serves(relay)
    scene.up.update({node: _link(node) for node in R[2:]})
    scene.table.update(R)
    assert scene.chosen() == set(R[:2])


async def test_relays_are_given_up_once_strangers_reach_us() -> None:
    scene = Scene(*R[:2])
    scene.relays.choose()
    scene.serves(R[0])
    scene.client = False
    assert scene.chosen() == set()
    scene.relays.on_event(RelayDown(R[0], "given up"))
    assert scene.relays.addresses == ()


@pytest.mark.parametrize(("reason", "again"), [("link lost", True), ("refused: RESERVATION_REFUSED", False)])
async def test_one_that_was_lost_is_asked_again_long_before_one_that_refused(
    reason: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ioa_p2p.node.relays.REST_S", 0.0)
    scene = Scene(R[0])
    scene.relays.choose()
    scene.relays.on_event(RelayDown(R[0], reason))
    assert (scene.chosen() == {R[0]}) is again
