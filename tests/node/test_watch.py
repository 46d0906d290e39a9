"""node/watch.py: sleep and moves are noticed, and nothing else."""

import ipaddress

import pytest

from ioa_p2p.node import watch
from ioa_p2p.node.watch import LOOK_S, Watch, hosts_of, local_addresses
from ioa_p2p.wire import limits

HOME, OFFICE = frozenset({"192.168.1.7", "> 192.168.1.7"}), frozenset({"10.0.0.7", "> 10.0.0.7"})


class Machine:
    def __init__(self) -> None:
        self.boot_s = 1_000.0
        self.addresses = HOME
        self.told: list[str] = []
        self.watch = Watch(lambda: self.boot_s, self.told.append, lambda: self.addresses)

    def look(self, after_s: float = LOOK_S) -> list[str]:
        """What is told at the next look."""
        self.boot_s += after_s
        before = len(self.told)
        self.watch.look()
        return self.told[before:]


def test_an_ordinary_day_is_not_told() -> None:
    machine = Machine()
    assert [machine.look(LOOK_S + late) for late in (0, 0.1, limits.DHT_JUMP_S)] == [[], [], []]


def test_sleep_is_told_once_on_waking() -> None:
    machine = Machine()
    assert machine.look(3_600) == ["woke up"]
    assert machine.look() == []


@pytest.mark.parametrize(
    "now",
    [OFFICE, HOME | {"10.8.0.2"}, frozenset({"192.168.1.7"}), frozenset({"192.168.1.7", "> 10.8.0.2"})],
    ids=["another network", "one more", "no way out", "another way out"],
)
def test_other_addresses_or_another_way_out_are_told_once(now: frozenset[str]) -> None:
    machine = Machine()
    machine.addresses = now
    assert machine.look() == ["the network changed"]
    assert machine.look() == []
    machine.addresses = HOME
    assert machine.look() == ["the network changed"], "coming back is a change too"


def test_only_addresses_that_others_could_use_count() -> None:
    told = local_addresses()
    plain = [ipaddress.ip_address(text.removeprefix("> ")) for text in told]
    assert not any(address.is_link_local for address in plain)
    assert not any(ipaddress.ip_address(text).is_loopback for text in told if not text.startswith(">"))


def test_a_socket_bound_to_one_address_is_reached_there_and_one_bound_to_all_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "local_addresses", lambda: frozenset({"192.0.2.7", "2001:db8::7", "> 192.0.2.7"}))
    assert hosts_of("192.168.1.7") == ["192.168.1.7"]
    assert hosts_of("0.0.0.0") == ["192.0.2.7"]
    assert hosts_of("::") == ["2001:db8::7"]
