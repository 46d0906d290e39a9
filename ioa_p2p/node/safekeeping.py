"""What a keeper does for its teams: it fetches the files of every result, for when the author sleeps.

TaskChanged, decided ──> blobs of the outcome ── up to 256 MiB a team ──> Blobs.have ──> on our disk, served to members

The talk every member holds anyway; a keeper's channel stays open for a day after the end. Keepers stand in the roster.
"""

import asyncio
import logging

from ioa_p2p.errors import IoaError
from ioa_p2p.node.blobs import Blobs
from ioa_p2p.team.team import Team
from ioa_p2p.wire import limits
from ioa_p2p.wire.step import Blob

log = logging.getLogger(__name__)


class Safekeeping:
    """node: ours."""

    def __init__(self, node: bytes, blobs: Blobs) -> None:
        self._node, self._blobs = node, blobs
        self._kept: dict[bytes, dict[bytes, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def is_keeper(self, team: Team) -> bool:
        return self._node in team.state.roster.keepers

    def look(self, team: Team, task: bytes) -> None:
        """A task changed: if its outcome is decided and has files, fetch them."""
        row = team.state.tasks.get(task)
        if row is None or row.outcome is None or not self.is_keeper(team):
            return
        for blob in row.outcome.blobs:
            if self._has_room(team.team, blob):
                self._kept.setdefault(team.team, {})[blob.hash] = blob.size
                fetching = asyncio.create_task(self._fetch(team.team, blob))
                self._tasks.add(fetching)
                fetching.add_done_callback(self._tasks.discard)

    def forget(self, team: bytes) -> None:
        self._kept.pop(team, None)

    async def aclose(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _has_room(self, team: bytes, blob: Blob) -> bool:
        """The size is what the author says; each blob is held to BLOB_BYTES_MAX whatever it says."""
        kept = self._kept.get(team, {})
        return blob.hash not in kept and sum(kept.values()) + blob.size <= limits.KEEPER_BLOB_BYTES_MAX

    async def _fetch(self, team: bytes, blob: Blob) -> None:
        try:
            await self._blobs.have(team, blob.hash)
        except IoaError as fault:
            log.info("a file of team %s is not kept: %s", team.hex()[:8], fault)
