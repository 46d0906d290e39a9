"""The index model as the node's other parts use it: loaded and asked on a thread of its own.

    text ── aspect ──> cells, sketch, vector | None: no model here, or not ready in time
                         └── unused for a minute ──> the model rests: its memory is free for others

Loading takes seconds and encoding milliseconds: neither may hold up the event loop.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ioa_p2p.dht.index import cell_key
from ioa_p2p.mind.meaning import Meaning

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

T = TypeVar("T")

CELLS_OF_AGENT = 3  # an agent is published under so many; see docs/search.md

WAIT_S = 3.0  # for a model that must be loaded; then a search goes by words alone
REST_S = 60.0  # unused for so long, a model rests

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Aspect:
    """One text as the model sees it. cells: nearest first. numbers: what the sketch rounds. vector: of length 1."""

    model: str
    cells: tuple[int, ...]
    sketch: bytes
    numbers: tuple[float, ...]
    vector: "Vectors"

    @property
    def keys(self) -> list[str]:
        """Index key texts of the cells."""
        return [cell_key(self.model, cell) for cell in self.cells]


class Sense:
    """load: blocks, and gives the model or None. Use as: `start`, then `aspect`; `aclose` at the end."""

    def __init__(self, load: Callable[[], Meaning | None], rest_s: float = REST_S) -> None:
        self.model: Meaning | None = None
        self._load = load
        self._rest_s = rest_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="meaning")
        self._loading: asyncio.Task[None] | None = None
        self._resting: asyncio.TimerHandle | None = None

    def start(self, then: Callable[[], None] = lambda: None) -> None:
        """Load behind; `then` is called once there is a model."""
        self._loading = asyncio.create_task(self._run(then))

    async def aclose(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
        if self._resting is not None:
            self._resting.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def aspect(self, text: str, cells: int, wait_s: float = WAIT_S) -> Aspect | None:
        """The text with its nearest cells; None if that takes longer than `wait_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                return await self._aspect(text, cells)
        return None

    async def call(self, work: Callable[..., T], *args: Any) -> T:
        """`work(*args)` on the model's thread."""
        if self._resting is not None:
            self._resting.cancel()
        loop = asyncio.get_running_loop()
        self._resting = loop.call_later(self._rest_s, self._rest)
        return await loop.run_in_executor(self._thread, work, *args)

    async def _aspect(self, text: str, cells: int) -> Aspect | None:
        if self._loading is not None:
            await asyncio.wait([self._loading])
        if self.model is None or not text.strip():
            return None
        return await self.call(aspect_of, self.model, text, cells)

    def _rest(self) -> None:
        if self.model is not None:
            self._thread.submit(self.model.rest)

    async def _run(self, then: Callable[[], None]) -> None:
        try:
            self.model = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)
        except Exception as fault:  # foreign code and its files: without it search goes by words
            log.warning("the index model cannot be loaded: %s: %s", type(fault).__name__, fault)
        if self.model is not None:
            log.info("search by meaning with %s", self.model.model)
            then()


def aspect_of(model: Meaning, text: str, cells: int) -> Aspect:
    """What `Sense.aspect` does, at once."""
    return aspect_at(model, model.encode([text])[0], cells)


def aspect_at(model: Meaning, vector: "Vectors", cells: int) -> Aspect:
    """Of a text with this vector."""
    return Aspect(model.model, model.cells(vector, cells), model.sketch(vector), model.numbers(vector), vector)
