"""Arguments of a control request, checked: whatever a client writes is a typed value or a UsageError that names it.

{"words": "disk", "limit": 5} ── text(args, "words"), whole(args, "limit", 20, 1, 200) ──> "disk", 5

null and a missing argument are the same: the default.
"""

from collections.abc import Mapping
from typing import Any, cast

from ioa_p2p.errors import UsageError
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import node_from_text
from ioa_p2p.wire.spending import Allowance

Args = Mapping[str, Any]


def text(args: Args, name: str) -> str:
    """Text that can be said in UTF-8; empty by default. Raises UsageError('bad-argument'), as all below."""
    value = args.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _bad(name, "text in UTF-8")
    return value


def flag(args: Args, name: str) -> bool:
    value = args.get(name)
    if value is not None and not isinstance(value, bool):
        raise _bad(name, "true or false")
    return bool(value)


def whole(args: Args, name: str, default: int, low: int, high: int) -> int:
    value = args.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _bad(name, f"a whole number from {low} to {high}")
    return value


def seconds(args: Args, name: str, default: float, high: float) -> float:
    """Above 0, at most `high`; so neither NaN nor infinite."""
    value = args.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= high:
        raise _bad(name, f"a number of seconds above 0, at most {high:g}")
    return float(value)


def nodes(args: Args, name: str, most: int) -> tuple[bytes, ...]:
    """Node ids; none by default."""
    told = args.get(name)
    if told is None:
        return ()
    if not isinstance(told, list) or len(cast(list[Any], told)) > most:
        raise _bad(name, f"a list of at most {most} node ids")
    return tuple(node_from_text(text({name: one}, name)) for one in cast(list[Any], told))


def budget(args: Args, name: str) -> Allowance:
    """Of a goal: {"tokens", "money", "calls", "agents"}, each may be missing. Money in millionths."""
    told = args.get(name)
    if told is None:
        told = {}
    if not isinstance(told, dict):
        raise _bad(name, "an object of amounts")
    amounts = {kind: _amount(cast(Args, told), name, kind) for kind in ("tokens", "money", "calls")}
    agents = whole(cast(Args, told), "agents", limits.AGENTS_BELOW_MAX, 0, limits.AGENTS_BELOW_MAX)
    return Allowance(**amounts, agents=agents)


def _amount(told: Args, name: str, kind: str) -> int | None:
    return whole({name: told.get(kind)}, name, 0, 0, limits.AMOUNT_MAX) if told.get(kind) is not None else None


def _bad(name: str, wanted: str) -> UsageError:
    return UsageError("bad-argument", f"{name} must be {wanted}", "docs/control.md lists the arguments of each verb")
