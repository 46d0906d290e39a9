"""One life of a small mesh in a process of its own, which kills itself with -9 at a save that it was told.

    python -m tests.live.mortal FOLDER KIND NTH before|after

    starts again what was open ──> waits until it ends ──> asks once more ──> dies at the NTH group with a row of KIND

KIND: the first word of a row's space ("vote", "decision", "task", ...). Each line printed is a fact that others were
told, as JSON: after it, no kill may undo it.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioa_p2p.effects import Save
from ioa_p2p.node import checks
from ioa_p2p.node.node import Node
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.team.decisions import HardState
from ioa_p2p.wire import codec
from tests.node.mesh import HELLO, Mesh

WAIT_S = 500.0
GOAL_S = 400.0  # a busy machine must not end a goal by its deadline
GOAL = "greet somebody with a hello"
ASKER, WORKER = "asker", "worker"


def main() -> None:
    folder, kind, nth, when = sys.argv[1:]
    die_at(kind, int(nth), when)
    asyncio.run(live(Path(folder)))


def tell(**fact: Any) -> None:
    print(json.dumps(fact), flush=True)


def die_at(kind: str, nth: int, when: str) -> None:
    """Every store of this process counts its groups with a row of this kind, and the last one is its death."""
    commit, left = SqliteStorage.commit, iter(range(nth - 1, -1, -1))

    def mortal(storage: SqliteStorage, saves: Sequence[Save]) -> None:
        last = any(save.space.split("/")[0] == kind for save in saves) and next(left) == 0
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(storage, saves)
        tell_votes(storage, saves)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteStorage.commit = mortal


def tell_votes(storage: SqliteStorage, saves: Sequence[Save]) -> None:
    for save in saves:
        if save.space.startswith("vote/") and save.key == b"state" and save.value:
            state = codec.decode(save.value, HardState)
            voter = storage._path.parent.name
            tell(fact="vote", voter=voter, team=save.space[5:], term=state.term, vote=state.vote.hex())


async def live(folder: Path) -> None:
    async with Mesh(folder) as mesh:
        mesh.make(ASKER)
        mesh.make(WORKER, seeds=(ASKER,), allow=(ASKER,), agents=[("hello", HELLO)])
        nodes = [await mesh.start(name) for name in (ASKER, WORKER)]
        tell(fact="started", degraded=[checks.degraded(node) for node in nodes])
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(node.ready.wait() for node in nodes))
            for story in nodes[0].stories.all():
                tell_end(story.team, await story.follow(lambda _: None))
            await ask(nodes[0])


async def ask(asker: Node) -> None:
    story = asker.ask(GOAL, GOAL_S)
    tell(fact="founded", **await story.founded(lambda _: None))
    tell_end(story.team, await story.follow(lambda _: None))


def tell_end(team: bytes, result: dict[str, Any]) -> None:
    tell(fact="ended", team=team.hex(), outcome=result["outcome"], answer=result["answer"])


if __name__ == "__main__":
    main()
