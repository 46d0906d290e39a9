"""JSON out of what a model wrote: as it stands, else mended (code fences, missing brackets, trailing commas)."""

import json
from typing import Any, TypeGuard

from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import check_nesting

_BRACKETS_MAX = 1_000  # the library that mends needs a second for 16,000 that are never closed


def read_object(text: str) -> dict[str, Any]:
    """Raises PeerError('no-json'): no object can be made of it."""
    text = text[: limits.MODEL_JSON_CHARS_MAX]
    for read in (json.loads, _mended):
        try:
            value = read(text)
            check_nesting(value)
        except (ValueError, RecursionError):
            continue
        if is_object(value):
            return value
    raise PeerError("no-json", "your answer is not one JSON object")


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """What JSON calls an object; its keys are texts."""
    return isinstance(value, dict)


def _mended(text: str) -> Any:
    """Raises ValueError where the library that mends is not installed, or cannot."""
    try:
        import json_repair
    except ImportError:
        raise ValueError("not JSON") from None
    if text.count("{") + text.count("[") > _BRACKETS_MAX:
        raise ValueError("too many brackets to mend")
    start = text.find("{")
    return json_repair.loads(text[start:]) if start >= 0 else None
