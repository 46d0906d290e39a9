"""What an endpoint understands of the OpenAI wire: the richest that it did not refuse.

    json_schema ── refused ──> json_object ── refused ──> plain text, the schema told in words

Learned from refusals (status 400, 404, 422), once an endpoint; see docs/planner.md for who speaks what.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from ioa_p2p.llm.port import Message, Request, Tool

_POORER = {"json_schema": "json_object", "json_object": "text"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """answers: how a shape is asked for. limit: the field that bounds an answer. counts: usage can be asked for."""

    answers: Literal["json_schema", "json_object", "text"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    counts: bool = True

    def without(self, complaint: str, request: Request) -> "Dialect | None":
        """A poorer one that avoids what an endpoint complained of; None: nothing of ours is to blame."""
        if "max_completion_tokens" in complaint and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "stream_options" in complaint and self.counts:
            return replace(self, counts=False)
        if request.shape is not None and self.answers in _POORER:
            return replace(self, answers=_POORER[self.answers])
        return None

    def fields(self, request: Request) -> dict[str, Any]:
        """The body of a chat completion, but for its model."""
        body: dict[str, Any] = {
            "messages": [_message(each) for each in self._messages(request)],
            self.limit: request.tokens_max,
        }
        if self.counts:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [_tool(each) for each in request.tools]
        if request.shape is not None and self.answers != "text":
            body["response_format"] = self._format(request)
        return body

    def _format(self, request: Request) -> dict[str, Any]:
        if request.shape is None or self.answers != "json_schema":
            return {"type": "json_object"}
        shape = request.shape
        schema = {"name": shape.name, "schema": dict(shape.schema), "strict": shape.strict}
        return {"type": "json_schema", "json_schema": schema}

    def _messages(self, request: Request) -> tuple[Message, ...]:
        """Where the endpoint does not take the schema, the first message tells it: the beginning stays the same."""
        if request.shape is None or self.answers == "json_schema":
            return request.messages
        schema = json.dumps(request.shape.schema, separators=(",", ":"))
        first, *rest = request.messages
        told = f"{first.text}\nAnswer with nothing but one JSON object that fits this JSON schema: {schema}"
        return (replace(first, text=told), *rest)


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.speaker, "content": message.text}
    if message.calls:
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.call:
        body["tool_call_id"] = message.call
    return body


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
