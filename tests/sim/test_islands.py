"""Counting meshes that should be one, in a world and over all scenarios."""

from bench.sim.adversary import _islands
from tests.dht.mesh import Mesh
from tests.sim.adversary.islands import islands


def test_two_halves_that_never_met_are_two_meshes_and_a_meeting_makes_them_one():
    mesh = Mesh(51, 6)
    for half in (mesh.contacts[:3], mesh.contacts[3:]):
        for contact in half:
            mesh.join(contact, half[:1])
    mesh.world.run(5)
    assert islands(mesh) == 1
    mesh.join(mesh.contacts[0], [mesh.contacts[3]])
    mesh.world.run(5)
    assert islands(mesh) == 0


def test_the_islands_of_all_scenarios_are_summed():
    assert sum(_islands({"islands_t02": 1, "churn_success": 0.5, "islands_t03": 2})) == 3
