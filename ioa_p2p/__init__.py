"""A hubless Internet of Agents: one node a device, signed records on a DHT, teams under an elected coordinator.

Where is what: ARCHITECTURE.md. `Node` and `Config` are imported on first use, for `import ioa_p2p` must stay light.
"""

from typing import TYPE_CHECKING, Any

from ioa_p2p.version import __version__

if TYPE_CHECKING:
    from ioa_p2p.node.config import Config
    from ioa_p2p.node.node import Node

__all__ = ["Config", "Node", "__version__"]


def __getattr__(name: str) -> Any:
    """PEP 562: the public names, loaded when somebody asks."""
    from importlib import import_module

    homes = {"Config": "ioa_p2p.node.config", "Node": "ioa_p2p.node.node"}
    if name not in homes:
        raise AttributeError(f"module 'ioa_p2p' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)
