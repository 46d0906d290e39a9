"""A hubless Internet of Agents: one node a device, signed records on a DHT, teams under an elected coordinator.

Where is what: ARCHITECTURE.md. The names below are loaded on first use: `import ioa_p2p` stays light.

    async with Node(config) as node: ...                      a node in a program of yours
    @skill("text.count", outputs=["text.words"]) def ...      an agent (see ioa_p2p.adapters.agent)
"""

from typing import TYPE_CHECKING, Any

from ioa_p2p.version import __version__

if TYPE_CHECKING:
    from ioa_p2p.adapters.agent import skill
    from ioa_p2p.adapters.base import Attachment, Failed, Progress, Result, Task
    from ioa_p2p.node.config import Config
    from ioa_p2p.node.node import Node
    from ioa_p2p.wire.records import Card, Skill

__all__ = [
    "Attachment", "Card", "Config", "Failed", "Node", "Progress", "Result", "Skill", "Task", "__version__", "skill",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """PEP 562: the public names, loaded when somebody asks."""
    from importlib import import_module

    homes = {"Config": "node.config", "Node": "node.node", "Card": "wire.records", "Skill": "wire.records"}
    homes |= dict.fromkeys(("Attachment", "Failed", "Progress", "Result", "Task"), "adapters.base")
    homes["skill"] = "adapters.agent"
    if name not in homes:
        raise AttributeError(f"module 'ioa_p2p' has no attribute {name!r}")
    return getattr(import_module(f"ioa_p2p.{homes[name]}"), name)
