"""Was a history linearizable: could every operation have happened at one instant between its call and its answer?

    invoke ──> ok | fail | unknown          ok: it happened; fail: it never did; unknown: it did, once, or never

Source: Wing and Gong, "Testing and Verifying Concurrent Objects" (1993), with the memory of visited configurations
of Lowe, "Testing for Linearizability" (2017). The object is a register that only grows: `append` a value, `read` all.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """kind: "append" (value: what) or "read" (value: all that was there, in order). end_s: None while unknown."""

    kind: str
    value: Any
    call_s: float
    end_s: float | None = None


class Recorder:
    """Collects a history. Handles of `invoke` are ended once by `ok` or `fail`; what is left open is unknown."""

    def __init__(self) -> None:
        self._open: dict[int, Operation] = {}
        self._ended: list[Operation] = []

    def invoke(self, kind: str, value: Any, now_s: float) -> int:
        handle = len(self._open) + len(self._ended)
        while handle in self._open:
            handle += 1
        self._open[handle] = Operation(kind, value, now_s)
        return handle

    def ok(self, handle: int, now_s: float, value: Any = None) -> None:
        """value: what a read saw."""
        called = self._open.pop(handle)
        self._ended.append(Operation(called.kind, called.value if value is None else value, called.call_s, now_s))

    def fail(self, handle: int) -> None:
        del self._open[handle]

    @property
    def history(self) -> list[Operation]:
        """An unknown read tells nothing."""
        return [*self._ended, *(each for each in self._open.values() if each.kind == "append")]


def linearizable(history: Sequence[Operation]) -> bool:
    """Search an order: depth first, each configuration (what happened, the register) once. An unknown append that no
    read saw is taken not to have happened: nothing depends on it."""
    order = max((each.value for each in history if each.kind == "read"), key=len, default=())
    known = [each for each in history if each.end_s is not None or each.value in order]
    operations = sorted(known, key=lambda each: each.call_s)
    must = sum(1 << i for i, each in enumerate(operations) if each.end_s is not None)
    stack: list[tuple[int, Hashable]] = [(0, 0)]
    seen = set(stack)
    while stack:
        done, length = stack.pop()
        if done & must == must:
            return True
        for i in _possible(operations, done):
            after = done | 1 << i, _apply(operations[i], order, length)
            if after[1] is not None and after not in seen:
                seen.add(after)
                stack.append(after)
    return False


def _possible(operations: Sequence[Operation], done: int) -> list[int]:
    """Those called before the first answer that is still due, the earliest last."""
    ends = [each.end_s for i, each in enumerate(operations) if not done >> i & 1 and each.end_s is not None]
    first = min(ends, default=float("inf"))
    waiting = (i for i, each in enumerate(operations) if not done >> i & 1 and each.call_s <= first)
    return sorted(waiting, key=lambda i: operations[i].end_s or float("inf"), reverse=True)


def _apply(operation: Operation, order: tuple[Any, ...], length: Any) -> int | None:
    """The register's length after it, or None. `order`, the longest that was read, says what must come next."""
    if operation.kind == "read":
        return length if operation.value == order[: len(operation.value)] and len(operation.value) == length else None
    return length + 1 if length >= len(order) or order[length] == operation.value else None
