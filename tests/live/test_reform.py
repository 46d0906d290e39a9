"""Three real nodes; two are killed for good in the middle of a job: the third goes on alone, and its goal ends.

home   asks, and is left          miller, baker   work, and die; the miller comes back when all is over
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.mesh import CommandError, Mesh, free_ports, ready, wait_until
from tests.live.test_kills import table

WAIT_S = 90.0  # lease and grace twice: of the majority, then of the tasks that went with it


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Mesh]:
    of: dict[str, list[str]] = {
        "home": [],
        "miller": ["--agent", table(tmp_path, "mill")],
        "baker": ["--agent", table(tmp_path, "bake")],
    }
    with Mesh(tmp_path, "bread") as mesh:
        ports = free_ports(len(of))
        mesh.make({name: ["--set", f"dht.port={port}", *of[name]] for name, port in zip(of, ports, strict=True)})
        mesh.introduce(["home"])
        for name in ("miller", "baker"):
            mesh.nodes[name].write("allow", [mesh.nodes["home"].id])
        for node in mesh.nodes.values():
            node.start()
        ready(mesh.nodes.values())
        yield mesh


def test_the_goal_of_a_team_whose_majority_is_killed_ends(mesh: Mesh, tmp_path: Path) -> None:
    home, miller, baker = mesh.nodes.values()
    team = home.ask("ask", "Bake bread of flour for bob", "--detach", "--timeout", "200")["team"]
    assert len(home.ask("team", "show", team)["members"]) == 3
    assert wait_until(lambda: (tmp_path / "runs").exists(), WAIT_S)
    miller.kill()
    baker.kill()
    with pytest.raises(CommandError, match="could not be met"):
        home.ask("ask", "--resume", team, timeout_s=WAIT_S)
    shown = home.ask("team", "show", team)
    assert [member["node"] for member in shown["members"]] == [home.id]
    assert (shown["outcome"], shown["decided_term"]) == ("failed", 1)
    miller.start()
    ready([miller])
    with pytest.raises(CommandError, match="can follow the team no more"):
        miller.ask("ask", "--resume", team, timeout_s=WAIT_S)
