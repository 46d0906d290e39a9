"""More seeds of the team channel than `test_core` plays."""

import pytest

from tests.sim import gossip, gossip_away


@pytest.mark.parametrize("seed", range(8, 48))
def test_every_member_ends_with_the_same_lines_whatever_the_weather(seed: int) -> None:
    gossip.play(seed, gossip.sound)


def test_a_day_and_five_thousand_lines_away_cost_hardly_more_than_the_lines_themselves() -> None:
    gossip_away.long_away(entries=5_000, seconds=86_400.0)
