"""More seeds of the team channel than `test_core` plays."""

import pytest

from tests.sim import gossip


@pytest.mark.parametrize("seed", range(8, 48))
def test_every_member_ends_with_the_same_lines_whatever_the_weather(seed: int) -> None:
    gossip.play(seed, gossip.sound)
