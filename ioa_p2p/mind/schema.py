"""The shape of a step as a model writes it: a strict JSON schema, small enough to be paid for at every call.

    {"why": "...", "step": {"do": "assign", "orders": [...], "wait": "all"}}

Strict means: every property is required, none is added. `answer` reads what comes.
"""

from typing import Any

from ioa_p2p.llm.port import Shape

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_ORDER = _object(
    member=_TEXT,
    skill=_TEXT,
    goal=_TEXT,
    reads=_TEXTS,
    gives={"type": "array", "items": _object(type=_TEXT, text=_TEXT)},
)
_SPEAK = _object(do=_one_of("speak"), member=_TEXT, text=_TEXT)
_ASSIGN = _object(do=_one_of("assign"), orders={"type": "array", "items": _ORDER}, wait=_one_of("all", "any", "none"))
_WAIT = _object(do=_one_of("wait"), tasks=_TEXTS, **{"for": _one_of("all", "any")}, seconds={"type": "integer"})
_FORM_TEAM = _object(do=_one_of("form_team"), order=_ORDER)
_CONCLUDE = _object(
    do=_one_of("conclude"), outcome=_one_of("done", "partial", "failed"), answer=_TEXT, result=_TEXT, evidence=_TEXTS
)


def step_shape(*, nests: bool) -> Shape:
    """nests: a member may be told to form a team of its own."""
    steps = [_SPEAK, _ASSIGN, _WAIT, *([_FORM_TEAM] if nests else []), _CONCLUDE]
    return Shape("step", _object(why=_TEXT, step={"anyOf": steps}))
