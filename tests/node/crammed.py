"""A whole mesh on a file system that fills up and is freed: `python -m tests.node.crammed FOLDER`, on a small tmpfs.

The last line printed is how four goals ended: before, at work when it filled up, asked while it was full, after.
"""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ioa_p2p.errors import StorageError
from ioa_p2p.node import checks
from ioa_p2p.node.node import Node
from tests.node.mesh import HELLO, Mesh
from tests.node.test_degraded import SLOW

WAIT_S = 60.0
FREED_S = 30.0  # then it must work again by itself
GOAL = "greet somebody with a hello"


async def main(folder: Path, elsewhere: Path) -> None:
    """elsewhere: a folder on another disk, for the slow agent."""
    (elsewhere / "slow.py").write_text(SLOW)
    async with Mesh(folder) as mesh:
        mesh.make("asker")
        agents = [("hello", HELLO), ("slow", str(elsewhere / "slow.py"))]
        mesh.make("worker", seeds=("asker",), allow=("asker",), agents=agents)
        asker, worker = await mesh.start("asker"), await mesh.start("worker")
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(asker.ready.wait(), worker.ready.wait())
        before = await reach(asker)
        at_work = asker.ask("wait at the door until it is opened", 120)
        await until((elsewhere / "waits").exists)
        cram(folder / "ballast")
        (elsewhere / "open").touch()
        await until(lambda: worker.health is not None)
        assert "full" in checks.degraded(worker), checks.degraded(worker)
        full = await reach(asker)
        assert at_work.result is None, "what is not saved is not told"
        assert "full" in checks.degraded(asker), checks.degraded(asker)
        assert not next(check for check in checks.run(asker) if check["name"] == "storage")["ok"]
        (folder / "ballast").unlink()
        async with asyncio.timeout(FREED_S):
            during = (await at_work.follow(lambda _: None))["outcome"]
        await until(lambda: asker.health is worker.health is None)
        print(before, during, full, await reach(asker))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.05)


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
    with tempfile.TemporaryDirectory() as elsewhere:
        asyncio.run(main(Path(sys.argv[1]), Path(elsewhere)))
