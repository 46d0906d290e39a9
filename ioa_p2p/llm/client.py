"""The openai library, in one place: a client whose answers are bounded, and its errors in our words.

Imported by `endpoint` when it is first needed, on a thread of its own: it takes a second or two to load.
"""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai

from ioa_p2p.llm.port import ModelError
from ioa_p2p.wire import limits

CONNECT_S = 5.0
_CODES = {401: "bad-key", 403: "bad-key", 408: "server-error", 429: "rate-limited"}
_HINTS = {"bad-key": "is OPENAI_API_KEY the key of OPENAI_BASE_URL?", "unreachable": "does the model's server run?"}


class Client:
    """One endpoint. It retries nothing and follows no redirect: where the words go is the owner's to say."""

    def __init__(self, url: str, key: str) -> None:
        http = openai.DefaultAsyncHttpxClient(
            follow_redirects=False, event_hooks={"response": [_bound]}, headers={"Accept-Encoding": "identity"}
        )
        timeout = httpx2.Timeout(limits.MODEL_S_MAX, connect=CONNECT_S)
        self._openai = openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0, http_client=http, timeout=timeout)

    async def stream(self, model: str, fields: dict[str, Any]) -> Any:
        """A stream of chunks, to be closed by `close()`. Raises ModelError."""
        try:
            return await self._openai.chat.completions.create(model=model, stream=True, **fields)
        except Exception as fault:
            raise told(fault) from fault

    async def models(self) -> list[str]:
        """The names of what is served. Raises ModelError."""
        try:
            page = await self._openai.models.list()
            return [str(each.id) for each in page.data]
        except Exception as fault:
            raise told(fault) from fault

    async def aclose(self) -> None:
        await self._openai.close()


def told(fault: Exception) -> ModelError:
    """A fault of the library in our words."""
    causes = [fault, fault.__cause__, fault.__context__]
    if ours := next((each for each in causes if isinstance(each, ModelError)), None):
        return ours
    if isinstance(fault, openai.APITimeoutError):
        return ModelError("too-late", "the model's server does not answer")
    if isinstance(fault, openai.APIConnectionError):
        return ModelError("unreachable", f"{fault.__cause__ or fault}"[:200], _HINTS["unreachable"], retry_s=0.5)
    if isinstance(fault, openai.APIStatusError):
        return _refused(fault)
    return ModelError("bad-answer", f"{type(fault).__name__}: {fault}"[:200])


def _refused(fault: openai.APIStatusError) -> ModelError:
    status = fault.status_code
    code = _CODES.get(status, "server-error" if status >= 500 else "bad-request")
    again = code in ("rate-limited", "server-error")
    wait_s = _seconds(fault.response.headers.get("retry-after", "")) if again else None
    return ModelError(code, f"status {status}: {fault.message}"[:400], _HINTS.get(code, ""), retry_s=wait_s)


def _seconds(text: str) -> float:
    """Of Retry-After; a date, or nonsense, counts as a second."""
    try:
        return min(max(0.0, float(text)), limits.MODEL_RETRY_S_MAX)
    except ValueError:
        return 1.0


async def _bound(response: httpx2.Response) -> None:
    """However much a server sends, and however it packs it, we read no more than so much."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ModelError("bad-answer", "the server packs its answers, though it was asked not to")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > limits.MODEL_STREAM_BYTES_MAX:
                raise ModelError("oversized", f"more than {limits.MODEL_STREAM_BYTES_MAX} bytes for one answer")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
