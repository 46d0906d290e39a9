"""Chunks of a streamed chat completion ──> the text as it comes, then one Reply. All of it is a stranger's."""

from typing import Any

from ioa_p2p.llm.port import Finish, ModelError, Reply, Request, ToolCall, Usage, request_tokens
from ioa_p2p.wire import limits

_FINISHES: dict[str, Finish] = {
    "stop": "stop", "length": "length", "tool_calls": "tools", "function_call": "tools", "content_filter": "refused",
}  # fmt: skip


class Gathering:
    """`take` each chunk (objects as the openai library makes them, unchecked); at the end ask for `reply`."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[int, list[str]] = {}  # place -> id, name, arguments
        self._finish = ""
        self._told = (0, 0)
        self._size = 0

    def take(self, chunk: Any) -> str:
        """The text that came with it. Raises ModelError('oversized' | 'bad-answer')."""
        try:
            return self._take(chunk)
        except (AttributeError, TypeError, ValueError) as fault:
            raise ModelError("bad-answer", f"not a chat completion: {fault}", usage=self.usage) from None

    @property
    def usage(self) -> Usage:
        """As told, else estimated from what was sent and came: nothing is free."""
        prompt, completion = self._told
        return Usage(1, prompt or request_tokens(self._request), completion or (self._size + 2) // 3)

    def reply(self) -> Reply:
        """The whole. Raises ModelError('unreachable'): it ends without saying why."""
        if not self._finish:
            raise ModelError("unreachable", "the answer broke off", usage=self.usage)
        calls = tuple(ToolCall(*self._calls[place]) for place in sorted(self._calls))
        text, refusal = "".join(self._texts), "".join(self._refusals)
        finish = "refused" if refusal else _FINISHES.get(self._finish, "stop")
        if calls and finish == "stop":  # some servers do not tell the two apart
            finish = "tools"
        return Reply(text or refusal, calls, finish, self.usage)

    def _take(self, chunk: Any) -> str:
        if chunk.usage is not None:
            self._told = (_count(chunk.usage.prompt_tokens), _count(chunk.usage.completion_tokens))
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self._finish = str(choice.finish_reason or self._finish)
        delta = choice.delta
        for call in delta.tool_calls or ():
            self._take_call(call)
        self._refusals += [self._counted(delta.refusal)] if delta.refusal else []
        text = self._counted(delta.content) if delta.content else ""
        self._texts.append(text)
        return text

    def _take_call(self, call: Any) -> None:
        if len(self._calls) >= limits.MODEL_TOOL_CALLS_MAX and call.index not in self._calls:
            raise ModelError("oversized", "too many tool calls in one answer", usage=self.usage)
        known = self._calls.setdefault(int(call.index), ["", "", ""])
        known[0] = self._counted(call.id) if call.id else known[0]
        if call.function is not None:
            known[1] = self._counted(call.function.name) if call.function.name else known[1]
            known[2] += self._counted(call.function.arguments) if call.function.arguments else ""

    def _counted(self, text: Any) -> str:
        if not isinstance(text, str):
            raise TypeError(f"{type(text).__name__} instead of a text")
        text = text.encode("utf-8", "replace").decode()  # JSON may smuggle half a surrogate pair in
        self._size += len(text.encode())
        if self._size > limits.MODEL_ANSWER_BYTES_MAX:
            raise ModelError("oversized", f"an answer above {limits.MODEL_ANSWER_BYTES_MAX} bytes", usage=self.usage)
        return text


def _count(value: Any) -> int:
    """A count of tokens that we can add up."""
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise TypeError(f"{value!r:.40} tokens")
    return value
