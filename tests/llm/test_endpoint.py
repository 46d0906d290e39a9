"""What an endpoint may do to us, over a real wire: it is outlived, bounded, and learned from."""

import asyncio
import gzip
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from ioa_p2p.llm.endpoint import Endpoint, Place, place_of
from ioa_p2p.llm.port import Message, ModelError, Request, Shape, reply_of
from ioa_p2p.llm.scripted import Turn
from ioa_p2p.wire import limits
from tests.llm.server import Raw, Server, Status, event

BOUND_S = 30.0
SHAPE = Shape("step", {"type": "object", "properties": {"n": {"type": "integer"}}})
Open = Callable[..., Awaitable[tuple[Endpoint, Server]]]


@pytest.fixture
async def waits() -> list[float]:
    return []


@pytest.fixture
async def opened(waits: list[float]) -> AsyncIterator[Open]:
    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async with AsyncExitStack() as stack:

        async def make(*turns: Any, model: str = "scripted", **fields: Any) -> tuple[Endpoint, Server]:
            server = await stack.enter_async_context(Server(*turns, **fields))
            endpoint = Endpoint(Place(server.url, "a key", model), pause)
            stack.push_async_callback(endpoint.aclose)
            return endpoint, server

        yield make


def ask(seconds: float = BOUND_S, **fields: Any) -> Request:
    return Request((Message("system", "be short"), Message("user", "go")), 50, seconds, **fields)


async def text_of(endpoint: Endpoint, request: Request | None = None) -> str:
    async with asyncio.timeout(BOUND_S):
        return (await reply_of(endpoint, request or ask())).text


async def fault_of(endpoint: Endpoint, request: Request | None = None) -> ModelError:
    with pytest.raises(ModelError) as fault:
        await text_of(endpoint, request)
    return fault.value


async def test_a_busy_server_is_asked_again_when_it_says(opened: Open, waits: list[float]) -> None:
    endpoint, _ = await opened(Status(429, retry_after="3"), "at last")
    assert await text_of(endpoint) == "at last"
    assert waits == [3.0]


async def test_a_server_that_is_busy_for_longer_than_we_have_is_not_waited_for(
    opened: Open, waits: list[float]
) -> None:
    endpoint, _ = await opened(Status(429, retry_after="3600"))
    assert (await fault_of(endpoint)).code == "rate-limited"
    assert waits == []


@pytest.mark.parametrize("told", ["", "Wed, 21 Oct 2037 07:28:00 GMT", "-5"])
async def test_a_server_that_is_down_is_tried_a_few_times(opened: Open, waits: list[float], told: str) -> None:
    endpoint, _ = await opened(*[Status(503, retry_after=told)] * limits.MODEL_TRIES_MAX)
    assert (await fault_of(endpoint)).code == "server-error"
    assert len(waits) == limits.MODEL_TRIES_MAX - 1


async def test_a_wrong_key_is_not_tried_again_and_says_what_to_look_at(opened: Open, waits: list[float]) -> None:
    endpoint, _ = await opened(Status(401, "who are you"))
    fault = await fault_of(endpoint)
    assert (fault.code, waits) == ("bad-key", [])
    assert "OPENAI_API_KEY" in fault.hint
    assert "a key" not in str(fault)


async def test_nobody_there_is_unreachable(waits: list[float]) -> None:
    async with Server() as server:
        url = server.url
    endpoint = Endpoint(Place(url, "a key", "m"), lambda seconds: asyncio.sleep(0))
    assert (await fault_of(endpoint)).code == "unreachable"
    await endpoint.aclose()


async def test_a_server_without_schemas_is_told_them_in_words_from_then_on(opened: Open) -> None:
    endpoint, server = await opened(Status(400, "response_format json_schema is not supported"), "{}", "{}")
    request = ask(shape=SHAPE)
    assert await text_of(endpoint, request) == await text_of(endpoint, request) == "{}"
    kinds = [body["response_format"]["type"] for body in server.requests]
    assert kinds == ["json_schema", "json_object", "json_object"]
    assert '"n"' not in server.requests[0]["messages"][0]["content"]
    assert '{"type":"object","properties":{"n"' in server.requests[1]["messages"][0]["content"]
    assert server.requests[1]["messages"][1:] == server.requests[0]["messages"][1:]


async def test_a_server_that_knows_no_formats_at_all_is_asked_in_plain_text(opened: Open) -> None:
    endpoint, server = await opened(Status(422, "unknown field"), Status(400, "response_format?"), "{}")
    assert await text_of(endpoint, ask(shape=SHAPE)) == "{}"
    assert "response_format" not in server.requests[2]
    assert "JSON schema" in server.requests[2]["messages"][0]["content"]


async def test_a_server_that_wants_another_name_for_the_bound_gets_it(opened: Open) -> None:
    endpoint, server = await opened(Status(400, "Use 'max_completion_tokens' instead."), "yes")
    assert await text_of(endpoint) == "yes"
    assert (server.requests[1]["max_completion_tokens"], "max_tokens" in server.requests[1]) == (50, False)


async def test_a_server_that_counts_nothing_is_estimated(opened: Open) -> None:
    endpoint, server = await opened(Status(400, "stream_options is unknown"), "yes")
    usage = (await reply_of(endpoint, ask())).usage
    assert usage.calls == 1
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens == 1
    assert "stream_options" not in server.requests[1]


async def test_a_request_that_is_refused_for_itself_is_refused(opened: Open) -> None:
    endpoint, _ = await opened(*[Status(400, "no")] * 3)
    assert (await fault_of(endpoint, ask(shape=SHAPE))).code == "bad-request"


async def test_ten_megabytes_are_not_read(opened: Open) -> None:
    piece = event({"content": "x" * 10_000})
    endpoint, server = await opened(Raw(itertools.repeat(piece, 1_000)))
    assert (await fault_of(endpoint)).code == "oversized"
    async with asyncio.timeout(BOUND_S):
        await server.gone.wait()


@pytest.mark.parametrize("junk", [b": keep on waiting\n\n", b"data: never the end", event({})])
async def test_a_stream_without_end_is_cut(opened: Open, junk: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MODEL_STREAM_BYTES_MAX", 200_000)
    endpoint, server = await opened(Raw(itertools.repeat(junk * 100)))
    assert (await fault_of(endpoint)).code == "oversized"
    async with asyncio.timeout(BOUND_S):
        await server.gone.wait()


async def test_an_error_without_end_is_cut(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MODEL_STREAM_BYTES_MAX", 20_000)
    endpoint, _ = await opened(Status(500, "x" * 100_000))
    assert (await fault_of(endpoint)).code == "oversized"


async def test_a_packed_answer_is_refused_unopened(opened: Open) -> None:
    bomb = Raw([gzip.compress(b"data: " + b"x" * 1_000_000)], headers="Content-Encoding: gzip")
    endpoint, _ = await opened(bomb)
    assert (await fault_of(endpoint)).code == "bad-answer"


@pytest.mark.parametrize(
    "data",
    [
        b"data: {not json\n\n",
        b"data: [1, 2]\n\n",
        b'data: {"choices": 3}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"content": 17}}]}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": "x"}]}}]}\n\n',
        b'data: {"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": "many"}}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'data: {"error": {"message": "out of memory"}}\n\n',
        b"\xff\xfe\n\n",
        b"",
    ],
)
async def test_nonsense_is_a_model_error(opened: Open, data: bytes) -> None:
    endpoint, _ = await opened(Raw([data]), "still here")
    assert (await fault_of(endpoint)).code in ("bad-answer", "unreachable")
    assert await text_of(endpoint) == "still here"


async def test_half_a_surrogate_pair_becomes_a_text_that_can_be_sent(opened: Open) -> None:
    endpoint, _ = await opened(Raw([event({"content": "a\ud83d"}, "stop")]))
    assert await text_of(endpoint) == "a?"


async def test_closing_the_answer_closes_the_request(opened: Open) -> None:
    endpoint, server = await opened(Turn(("half",), hold=asyncio.Event()))
    async with asyncio.timeout(BOUND_S):
        async with aclosing(endpoint.answer(ask())) as pieces:
            assert await anext(pieces) == "half"
        await server.gone.wait()


async def test_the_only_model_that_is_served_needs_no_name(opened: Open) -> None:
    endpoint, server = await opened("yes", model="", served=("tiny",))
    assert await text_of(endpoint) == "yes"
    assert server.requests[0]["model"] == "tiny"
    assert "tiny" in endpoint.name


async def test_of_several_models_one_must_be_named(opened: Open) -> None:
    endpoint, _ = await opened(model="", served=("small", "large"))
    assert (await fault_of(endpoint)).code == "no-endpoint"


def test_there_is_a_place_only_where_both_its_variables_are_set() -> None:
    url, key = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, {"OPENAI_API_KEY": "secret"}
    assert place_of(url) is None
    assert place_of(key) is None
    assert place_of(url | key | {"OPENAI_MODEL": "m"}) == Place("http://127.0.0.1:1/v1", "secret", "m")
    assert place_of(url | key | {"OPENAI_MODEL": "m"}, "other") == Place("http://127.0.0.1:1/v1", "secret", "other")
    assert "secret" not in repr(place_of(url | key))


def test_the_library_is_loaded_only_when_a_model_is_asked() -> None:
    code = "import sys, ioa_p2p.llm.endpoint, ioa_p2p.llm.scripted; print('openai' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


async def test_without_the_library_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "ioa_p2p.llm.client", raising=False)
    fault = await fault_of(Endpoint(Place("http://127.0.0.1:1/v1", "k", "m")))
    assert (fault.code, fault.hint) == ("missing-library", "pip install 'ioa-p2p[openai]'")
