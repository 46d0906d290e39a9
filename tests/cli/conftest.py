"""A make-believe node behind a real control socket, and the command line called in this process."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.cli import main
from ioa_p2p.node.control import ControlServer, Emit, Handler
from ioa_p2p.node.home import Home, find_home

NODE, OTHER = "a" * 52, "b" * 52
Script = Callable[[dict[str, Any]], tuple[list[dict[str, Any]], dict[str, Any] | None]]


@dataclass
class Answer:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> dict[str, Any]:
        """The last line with --json."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line)["event"] for line in self.out.splitlines()[:-1]]


Cli = Callable[..., Answer]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return find_home(None, str(tmp_path), {})


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run one command of the node in `home`."""
    for variable in ("IOA_P2P_NAME", "IOA_P2P_MESH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("IOA_P2P_HOME", str(tmp_path))

    def call(*arguments: str) -> Answer:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(arguments)
        return Answer(int(end.value.code or 0), *capsys.readouterr())

    return call


@dataclass
class FakeNode:
    """Answers each verb by its script: args -> (events, result; None: never). `asked` holds what was asked."""

    scripts: dict[str, Script] = field(default_factory=dict[str, Script])
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])

    def answers(self, verb: str, result: dict[str, Any] | None, *events: dict[str, Any]) -> None:
        self.scripts[verb] = lambda _: (list(events), result)

    def handler(self, verb: str) -> Handler:
        async def handle(args: dict[str, Any], emit: Emit) -> dict[str, Any]:
            self.asked.append((verb, args))
            events, result = self.scripts[verb](args)
            for event in events:
                emit(event)
            if result is None:
                await asyncio.Event().wait()
            return result or {}

        return handle


VERBS = (
    "status id peers publish find show ask resume teams team cancel tasks task watch forget retry doctor seeds stop"
    " team-export"
).split()


@pytest.fixture
def node(home: Home) -> Iterator[FakeNode]:
    """A running node: it holds the lock and serves the socket, from a thread of its own."""
    fake = FakeNode()
    handlers = {verb: fake.handler(verb) for verb in VERBS}
    ready, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with ControlServer(home.socket, handlers):
            ready.set()
            await stop.wait()

    with home.lock():
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        assert ready.wait(30)
        yield fake
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(30)
