"""How many meshes there are: nodes that know each other, through whomever, are one."""

from tests.dht.mesh import Mesh


def islands(mesh: Mesh) -> int:
    """Meshes besides the first one, of all nodes alive; 0 if all are one."""
    alive = {contact.key: contact for contact in mesh.alive()}
    near: dict[bytes, set[bytes]] = {key: set() for key in alive}
    for key, contact in alive.items():
        for other in mesh.machine(contact).contacts:
            if other.key in alive:
                near[key].add(other.key)
                near[other.key].add(key)
    meshes, left = 0, set(alive)
    while left:
        meshes, edge = meshes + 1, {left.pop()}
        while edge:
            edge = {key for one in edge for key in near[one]} & left
            left -= edge
    return meshes - 1
