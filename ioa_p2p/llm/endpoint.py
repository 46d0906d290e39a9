"""A model behind any endpoint that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, and others.

    Request ── dialect ──> POST URL/chat/completions (streamed) ── gathering ──> text, text, ..., Reply
                 ^ poorer <── refused      │ busy, down: again, while there is time
                                           └ late, too much, closed: ModelError; the connection is given up

The `openai` library is loaded by `warm`, or with the first request. All is bounded: seconds, tries, bytes, tool calls.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ioa_p2p.llm.dialect import Dialect
from ioa_p2p.llm.gathering import Gathering
from ioa_p2p.llm.port import ModelError, Reply, Request
from ioa_p2p.wire import limits

if TYPE_CHECKING:
    from ioa_p2p.llm.client import Client

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]

_REFUSALS = ("bad-request",)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is. model: empty = the only one that is served there. The key is never shown."""

    url: str
    key: str = field(repr=False)
    model: str = ""


def place_of(environment: Mapping[str, str], model: str = "") -> Place | None:
    """What OPENAI_BASE_URL, OPENAI_API_KEY and, if no model is named, OPENAI_MODEL say; None unless both of the
    first are there: nothing goes to a server that the owner did not name."""
    url, key = environment.get("OPENAI_BASE_URL", ""), environment.get("OPENAI_API_KEY", "")
    return Place(url, key, model or environment.get("OPENAI_MODEL", "")) if url and key else None


class Endpoint:
    """A `Model`. pause: how to wait before another try."""

    def __init__(self, place: Place, pause: Pause = asyncio.sleep) -> None:
        self._place = place
        self._pause = pause
        self._dialect = Dialect()
        self._model = place.model
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    @property
    def name(self) -> str:
        return f"{self._model or 'the model'} at {self._place.url}"

    async def warm(self) -> None:
        """Load the library: some seconds on a small board. Raises ModelError('missing-library')."""
        await self._open()

    async def answer(self, request: Request) -> AsyncGenerator[str | Reply, None]:
        """Text as it comes, then one Reply. Raises ModelError."""
        gathering = Gathering(request)
        late = ModelError("too-late", f"no whole answer within {request.seconds:g} s", usage=gathering.usage)
        deadline = asyncio.get_running_loop().time() + request.seconds
        try:
            chunks = await _by(deadline, self._begin(request, deadline))
            async with _closing(chunks), aclosing(_each(chunks, deadline)) as stream:
                async for chunk in stream:
                    if text := gathering.take(chunk):
                        yield text
        except TimeoutError:
            raise late from None
        yield gathering.reply()

    async def aclose(self) -> None:
        self._closed = True
        if self._client is not None:
            await self._client.aclose()

    async def _begin(self, request: Request, deadline: float) -> Any:
        """The open stream, after as many tries as there are time and reason for."""
        client = await self._open()
        tries = 0
        while True:
            try:
                return await client.stream(await self._named(client), self._dialect.fields(request))
            except ModelError as fault:
                if fault.code in _REFUSALS and (poorer := self._dialect.without(str(fault), request)):
                    self._dialect = poorer
                    continue
                tries += 1
                if not _worth(fault, tries, deadline):
                    raise
                await self._pause(fault.retry_s or 0.0)

    async def _open(self) -> "Client":
        """The client; the library is loaded on a thread, for it takes longer than a beat."""
        async with self._opening:
            if self._closed:
                raise ModelError("unreachable", "the endpoint is closed")
            if self._client is None:
                self._client = await asyncio.to_thread(_client, self._place)
            return self._client

    async def _named(self, client: "Client") -> str:
        if not self._model:
            served = await client.models()
            if len(served) != 1:
                raise ModelError("no-endpoint", f"{len(served)} models are served", "name one: model, or OPENAI_MODEL")
            self._model = served[0]
        return self._model


def _client(place: Place) -> "Client":
    try:
        from ioa_p2p.llm.client import Client
    except ImportError as fault:
        hint = "pip install 'ioa-p2p[openai]'"
        raise ModelError("missing-library", f"a model needs {fault.name or 'openai'}", hint) from fault
    return Client(place.url, place.key)


def _worth(fault: ModelError, tries: int, deadline: float) -> bool:
    left_s = deadline - asyncio.get_running_loop().time()
    return fault.retry_s is not None and fault.retry_s < left_s and tries < limits.MODEL_TRIES_MAX


async def _each(chunks: Any, deadline: float) -> AsyncGenerator[Any, None]:
    """The chunks of a stream until `deadline`. Raises TimeoutError and ModelError."""
    from ioa_p2p.llm.client import told

    iterator = chunks.__aiter__()
    while True:
        try:
            chunk = await _by(deadline, anext(iterator))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise
        except Exception as fault:
            raise told(fault) from fault
        yield chunk


async def _by(deadline: float, work: Awaitable[T]) -> T:
    async with asyncio.timeout_at(deadline):
        return await work


@asynccontextmanager
async def _closing(chunks: Any) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await chunks.close()
