"""How long nobody may lead before the launcher acts: time that a machine slept does not count."""

from ioa_p2p.team.rest import Rest
from ioa_p2p.team.tasks import LAN
from tests.team.people import later

PATIENCE_S = LAN.lease_s + LAN.grace_s


def rest() -> Rest:
    made = Rest(LAN)
    made.begin(later(0))
    return made


def beats(one: Rest, first: float, last: float, *, led: bool = False) -> None:
    at = first
    while at <= last:
        one.look(later(at), led=led)
        at += LAN.beat_s


def test_a_majority_is_lost_after_lease_and_grace_without_a_coordinator() -> None:
    one = rest()
    beats(one, 0, PATIENCE_S)
    assert not one.is_unled(later(PATIENCE_S))
    assert one.is_unled(later(PATIENCE_S + 0.1))


def test_a_beat_that_comes_late_starts_the_wait_anew() -> None:
    one = rest()
    beats(one, 0, 5)
    one.look(later(3_600), led=False)
    beats(one, 3_602, 3_600 + PATIENCE_S)
    assert not one.is_unled(later(3_600 + PATIENCE_S))
    assert one.is_unled(later(3_600 + PATIENCE_S + 0.1))


def test_as_long_as_somebody_leads_nothing_is_lost() -> None:
    one = rest()
    beats(one, 0, 100, led=True)
    assert not one.is_unled(later(101))
