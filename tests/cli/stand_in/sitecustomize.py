"""On PYTHONPATH it puts a make-believe node in place of the real one: lock, socket, `status` and `stop` alone.

FAKE_NODE=ready | alone (never ready) | lame (an agent failed) | broken (cannot open) | silent (never opens)
"""

import asyncio
import contextlib
import logging
import os
import sys
import types
from typing import Any


class Node:
    def __init__(self, config: Any) -> None:
        self._config = config
        self._stopped = asyncio.Event()
        self.seed = f"{'a' * 52}@{config.dht_host}:{config.dht_port}"
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Node":
        from ioa_p2p.errors import NetError
        from ioa_p2p.node.control import ControlServer

        if os.environ["FAKE_NODE"] == "broken":
            raise NetError("port-in-use", f"port {self._config.dht_port} is taken", "choose another")
        if os.environ["FAKE_NODE"] == "silent":
            await asyncio.Event().wait()
        self._open.enter_context(self._config.home.lock())
        handlers = {"status": self.status, "stop": self.stop, "id": self.id}
        await self._open.enter_async_context(ControlServer(self._config.home.socket, handlers))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()
        (self._config.home.data_folder / "closed").write_text("in order")

    async def run_until_stopped(self) -> None:
        await self._stopped.wait()

    async def status(self, *_: Any) -> dict[str, Any]:
        ready = os.environ["FAKE_NODE"] in ("ready", "lame")
        failed = {"agents_failed": {"meter": "no such file"}} if os.environ["FAKE_NODE"] == "lame" else {}
        return {"ready": ready, "pid": os.getpid(), "dht_port": self._config.dht_port, **failed}

    async def id(self, *_: Any) -> dict[str, Any]:
        return {"seed": self.seed}

    def reload(self, config: Any) -> None:
        logging.getLogger("ioa_p2p.node").info("allows %d", len(config.allow))

    async def stop(self, *_: Any) -> dict[str, Any]:
        self._stopped.set()
        return {"stopping": True}


module: Any = types.ModuleType("ioa_p2p.node.service")
module.serving = Node
sys.modules["ioa_p2p.node.service"] = module
