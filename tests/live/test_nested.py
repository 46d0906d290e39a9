"""Real node processes: the coordinator of a child team is killed in the middle, and the goal above ends as if nothing
had happened.

    home ──> valley, which forms a team ──> wood-a, wood-b: one measures, either leads
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.mesh import ROOT, Mesh, free_ports, wait_until

WAIT_S = 60.0
GROVE = ROOT / "tests" / "node" / "grove.py"


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Mesh]:
    valley, leaf = tmp_path / "valley.toml", tmp_path / "leaf.toml"
    skills = '[{ name = "valley.survey", outputs = ["valley.total"], description = "Survey the valley." }]'
    valley.write_text(f'[agents.valley]\nadapter = "team"\ngoal = "Measure each trunk"\nskills = {skills}\n')
    leaf.write_text(f'[agents.leaf]\nadapter = "python"\ntarget = "{GROVE}"\nenv = {{ GROVE = "{tmp_path}" }}\n')
    broker, worker = ["--agent", str(valley), "--set", "may_coordinate=false"], ["--agent", str(leaf)]
    seed = ["--set", f"dht.port={free_ports(1)[0]}"]
    with Mesh(tmp_path, "nested") as made:
        made.make({"home": seed, "valley": broker, "wood-a": worker, "wood-b": worker})
        home, valley_node, *woods = made.nodes.values()
        valley_node.write("allow", [home.id, *(wood.id for wood in woods)])
        for wood in woods:
            wood.write("allow", [valley_node.id])
        made.introduce(["home"])
        for node in made.nodes.values():
            node.start()
        assert wait_until(lambda: all(node.call("status").get("ready") for node in made.nodes.values()), WAIT_S)
        yield made


def test_a_goal_does_not_notice_that_the_coordinator_of_the_team_below_was_killed(mesh: Mesh, tmp_path: Path) -> None:
    home, valley = mesh.nodes["home"], mesh.nodes["valley"]
    root = home.ask("ask", "Survey the valley", "--detach", "--timeout", "100")["team"]
    assert wait_until((tmp_path / "runs").exists, WAIT_S), "a leaf runs"
    (child,) = home.call("team", team=root)["children"]
    leader = mesh.by_id(valley.call("team", team=child["team"])["coordinator"])
    assert leader.name.startswith("wood")
    leader.kill()
    (tmp_path / "open").touch()
    assert wait_until(lambda: bool(home.call("team", team=root).get("outcome")), WAIT_S)
    told = home.call("team", team=root)
    assert (told["outcome"], told["result"]["answer"]) == ("concluded", "3 trunks")
    (task,) = told["tasks"]
    assert (task["agent"], task["attempt"], task["state"]) == ("valley", 1, "succeeded")
    below: dict[str, Any] = valley.call("team", team=child["team"])
    assert (below["parent"], below["outcome"], below["term"] > 1) == (root, "concluded", True)
