"""A node with its local door open: what `ioa-p2p up` runs, and what a program may embed.

async with serving(config) as node: await node.run_until_stopped()
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ioa_p2p.node import verbs
from ioa_p2p.node.config import Config
from ioa_p2p.node.control import ControlServer
from ioa_p2p.node.node import Node


@asynccontextmanager
async def serving(config: Config) -> AsyncGenerator[Node]:
    """Raises UsageError, StorageError or NetError with a hint; whatever was opened is closed again."""
    async with Node(config) as node, ControlServer(config.home.socket, verbs.handlers(node)):
        yield node
