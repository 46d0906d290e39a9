"""One contract for every model: the scripted one, and the openai library against a real server on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from ioa_p2p.llm.endpoint import Endpoint, Place
from ioa_p2p.llm.port import (
    Finish,
    Message,
    Model,
    ModelError,
    Reply,
    Request,
    Shape,
    Tool,
    ToolCall,
    reply_of,
    request_tokens,
    tokens_of,
)
from ioa_p2p.llm.scripted import Scripted, ScriptedLLM, Turn
from tests.llm.server import Server

BOUND_S = 30.0
Serve = Callable[..., Awaitable[Model]]
SHAPE = Shape("number", {"type": "object", "properties": {"n": {"type": "integer"}}})
ADD = Tool("add", "Add numbers.", {"type": "object", "properties": {"of": {"type": "array"}}})


@pytest.fixture(params=["scripted", "wire"])
async def serve(request: pytest.FixtureRequest) -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def make(*turns: Scripted) -> Model:
            if request.param == "scripted":
                return await stack.enter_async_context(ScriptedLLM(*turns))
            server = await stack.enter_async_context(Server(*turns))
            endpoint = Endpoint(Place(server.url, "a key", "scripted"))
            stack.push_async_callback(endpoint.aclose)
            return endpoint

        yield make


def ask(*texts: str, seconds: float = BOUND_S, **fields: Any) -> Request:
    return Request(tuple(Message("user", text) for text in texts), 100, seconds, **fields)


async def pieces_of(model: Model, request: Request) -> list[str | Reply]:
    async with asyncio.timeout(BOUND_S), aclosing(model.answer(request)) as pieces:
        return [piece async for piece in pieces]


async def test_text_comes_in_its_pieces_and_then_whole(serve: Serve) -> None:
    model = await serve(Turn(("one ", "two", " ü")))
    *pieces, reply = await pieces_of(model, ask("count"))
    assert pieces == ["one ", "two", " ü"]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish, reply.calls) == ("one two ü", "stop", ())


async def test_a_request_reaches_the_model_as_it_was_asked(serve: Serve) -> None:
    seen: list[Request] = []

    def look(request: Request) -> str:
        seen.append(request)
        return "{}"

    model = await serve(look)
    asked = Request(
        (
            Message("system", "be short"),
            Message("user", "add"),
            Message("assistant", "", (ToolCall("1", "add", '{"of": [1]}'),)),
            Message("tool", "1", call="1"),
        ),
        7,
        BOUND_S,
        SHAPE,
        (ADD,),
    )
    await reply_of(model, asked)
    (came,) = seen
    assert (came.messages, came.tokens_max, came.shape, came.tools) == (asked.messages, 7, SHAPE, (ADD,))


async def test_what_it_cost_is_told(serve: Serve) -> None:
    model = await serve("three words here")
    request = ask("a question of some length")
    usage = (await reply_of(model, request)).usage
    assert (usage.calls, usage.prompt_tokens) == (1, request_tokens(request))
    assert usage.completion_tokens == tokens_of("three words here")


async def test_tool_calls_come_whole_though_they_are_streamed_in_parts(serve: Serve) -> None:
    calls = (ToolCall("a", "add", '{"of": [1, 2]}'), ToolCall("b", "add", '{"of": []}'))
    model = await serve(Turn(calls=calls, finish="tools"))
    reply = await reply_of(model, ask("add", tools=(ADD,)))
    assert (reply.calls, reply.finish) == (calls, "tools")


@pytest.mark.parametrize("finish", ["length", "refused"])
async def test_an_answer_that_is_no_answer_says_so(serve: Serve, finish: Finish) -> None:
    model = await serve(Turn(("I can",), finish=finish))
    reply = await reply_of(model, ask("do"))
    assert (reply.text, reply.finish) == ("I can", finish)


async def test_an_empty_answer_is_an_answer(serve: Serve) -> None:
    assert (await reply_of(await serve(""), ask("do"))).text == ""


async def test_a_model_that_stops_in_the_middle_is_an_error_after_what_it_said(serve: Serve) -> None:
    model = await serve(Turn(("half",), fault=ModelError("unreachable", "gone")), "whole")
    async with asyncio.timeout(BOUND_S), aclosing(model.answer(ask("do"))) as pieces:
        assert await anext(pieces) == "half"
        with pytest.raises(ModelError):
            await anext(pieces)
    assert (await reply_of(model, ask("do"))).text == "whole"


async def test_a_model_that_never_ends_is_given_up_in_time(serve: Serve) -> None:
    model = await serve(Turn(("half",), hold=asyncio.Event()), "whole")
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(ModelError) as fault:
            await reply_of(model, ask("do", seconds=1.0))
        assert fault.value.code == "too-late"
        assert fault.value.usage.calls == 1
        assert (await reply_of(model, ask("do"))).text == "whole"


async def test_a_cancelled_request_leaves_the_model_usable(serve: Serve) -> None:
    model = await serve(Turn(hold=asyncio.Event()), "whole")
    asking = asyncio.create_task(reply_of(model, ask("do")))
    async with asyncio.timeout(BOUND_S):
        for _ in range(20):
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        assert (await reply_of(model, ask("do"))).text == "whole"


async def test_requests_run_beside_each_other(serve: Serve) -> None:
    gate = asyncio.Event()

    def last(request: Request) -> str:
        gate.set()
        return "second"

    model = await serve(Turn(("first",), hold=gate), last)
    async with asyncio.timeout(BOUND_S):
        replies = await asyncio.gather(reply_of(model, ask("1")), reply_of(model, ask("2")))
    assert sorted(reply.text for reply in replies) == ["first", "second"]


async def test_a_closed_model_answers_no_more_and_may_be_closed_again(serve: Serve) -> None:
    model = await serve()
    await model.aclose()
    await model.aclose()
    with pytest.raises(ModelError) as fault:
        await reply_of(model, ask("do"))
    assert fault.value.code == "unreachable"
