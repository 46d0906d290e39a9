"""A whole mesh on a file system that fills up and is freed: `python -m tests.node.crammed FOLDER`, on a small tmpfs.

The last line printed is how the three goals ended: before, while it was full, after.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

from ioa_p2p.errors import StorageError
from ioa_p2p.node import checks
from ioa_p2p.node.node import Node
from tests.node.mesh import HELLO, Mesh

WAIT_S = 60.0
FREED_S = 30.0  # then it must work again by itself
GOAL = "greet somebody with a hello"


async def main(folder: Path) -> None:
    async with Mesh(folder) as mesh:
        mesh.make("asker")
        mesh.make("worker", seeds=("asker",), allow=("asker",), agents=[("hello", HELLO)])
        asker, worker = await mesh.start("asker"), await mesh.start("worker")
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(asker.ready.wait(), worker.ready.wait())
        before = await reach(asker)
        cram(folder / "ballast")
        full = await reach(asker)
        assert "full" in checks.degraded(asker), checks.degraded(asker)
        assert not next(check for check in checks.run(asker) if check["name"] == "storage")["ok"]
        (folder / "ballast").unlink()
        async with asyncio.timeout(FREED_S):
            while asker.health is not None:
                await asyncio.sleep(0.05)
        print(before, full, await reach(asker))


async def reach(asker: Node) -> str:
    """How a goal ends, with no more than a word; a goal may be refused at once, or end soon."""
    try:
        async with asyncio.timeout(WAIT_S):
            return (await asker.ask(GOAL, 60).follow(lambda _: None))["outcome"]
    except StorageError as fault:
        return fault.code


def cram(ballast: Path) -> None:
    """Until not one more byte fits."""
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
