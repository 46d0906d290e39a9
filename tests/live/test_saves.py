"""kill -9 at saves of each kind; `./dev sim kills` plays some forty deaths."""

from pathlib import Path

from tests.live.lives import Death, Lives

DEATHS = (Death("launch", 1, "after"), Death("vote", 2, "before"), Death("decision", 3, "after"))


def test_a_mesh_killed_at_its_saves_starts_again_and_takes_back_nothing_that_it_told(tmp_path: Path) -> None:
    lives = Lives(tmp_path).live(DEATHS)
    assert lives.lost == []
    assert lives.votes_twice == 0
    assert (lives.deaths, lives.starts) == (len(DEATHS), len(DEATHS) + 1)
