"""How this life of the node began: what a restart may hold against the work that it cut short."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Life:
    """boot: the OS boot's id; times since boot that were saved under another one mean nothing any more.
    clean: the last life of this node ended on purpose."""

    boot: bytes = b""
    clean: bool = False
