"""What whoever runs the node should hear of: faults of its own, and misdeeds of others. Bounded.

    ours(text, hint) ──> kept, the newest last ────┐
    of(node, text) ──> the last one of each node ──┴──> texts, ours last; `doctor` names ours alone

Strangers can raise as many alarms about themselves as they like: those neither push ours out nor fill the log.
"""

import logging
from collections.abc import Hashable
from typing import TypeVar

from ioa_p2p.wire.ids import NodeId

KEPT_MAX = 100  # of either kind; over: the oldest goes

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)


class Alarms:
    def __init__(self) -> None:
        self._ours: dict[str, str] = {}
        self._others: dict[NodeId, str] = {}

    def ours(self, text: str, hint: str = "") -> None:
        """About this node. hint: what to do about it. Called on any thread."""
        log.warning(text)
        _keep(self._ours, text, hint)

    def of(self, node: NodeId, text: str) -> None:
        """About another node; logged once a node."""
        if node not in self._others:
            log.warning(text)
        _keep(self._others, node, text)

    @property
    def faults(self) -> list[tuple[str, str]]:
        """(text, hint) of ours, the newest last."""
        return list(self._ours.items())

    @property
    def texts(self) -> list[str]:
        """All of them, ours last."""
        return [*self._others.values(), *self._ours]


def _keep(kept: dict[K, str], key: K, value: str) -> None:
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > KEPT_MAX:
        del kept[next(iter(kept))]
