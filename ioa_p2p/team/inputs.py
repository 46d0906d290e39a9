"""A task's inputs, resolved from the outcomes it refers to."""

from typing import Any, cast

from ioa_p2p.errors import PeerError
from ioa_p2p.team.events import InputValue
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import codec
from ioa_p2p.wire.step import Blob, Input, Outcome, TaskSpec


def resolve(spec: TaskSpec, state: TeamState) -> tuple[InputValue, ...]:
    """One InputValue for each input, in order. A provider whose output lacks the type gives no value: the
    agent is told what there is, and says itself whether that is enough."""
    return tuple(_resolve(each, state) for each in spec.inputs)


def _resolve(each: Input, state: TeamState) -> InputValue:
    outcomes = [row.outcome for task in each.tasks if (row := state.tasks[task]).outcome is not None]
    values = [value for outcome in outcomes if (value := _value(outcome, each.type))]
    if each.value:
        values.append(each.value)
    return InputValue(each.type, tuple(values), tuple(blob for one in outcomes for blob in _blobs(one, each.type)))


def _value(outcome: Outcome, type_name: str) -> bytes:
    """The inline value of one output type, or nothing."""
    outputs = outputs_of(outcome)
    return codec.encode(outputs[type_name]) if type_name in outputs else b""


def _blobs(outcome: Outcome, type_name: str) -> list[Blob]:
    return [blob for blob in outcome.blobs if blob.type in ("", type_name)]


def outputs_of(outcome: Outcome) -> dict[str, Any]:
    """Output type -> value. A worker's nonsense counts as no outputs, and what is no text names none."""
    try:
        outputs: Any = codec.read_any(outcome.outputs) if outcome.outputs else {}
    except PeerError:
        return {}
    named = cast(dict[Any, Any], outputs) if isinstance(outputs, dict) else {}
    return {name: value for name, value in named.items() if isinstance(name, str)}
