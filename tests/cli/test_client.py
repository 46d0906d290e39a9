"""cli/client.py against a server that misbehaves."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ioa_p2p.cli.client import NotRunningError, RefusedError, TimedOutError, ask, call


@contextmanager
def server(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """One connection, handed to `serve` after its request was read."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        thread.join(30)


def test_a_node_that_dies_before_it_answers_is_gone(tmp_path: Path) -> None:
    for said in (b"", b'{"event": {}}\n', b'{"ok": true'):
        path = tmp_path / f"{len(said)}.sock"
        with server(path, lambda connection, said=said: connection.sendall(said)):
            with pytest.raises(NotRunningError) as fault:
                ask(path, "status", {})
            assert fault.value.code == "node-gone"


def test_a_silent_node_is_a_timeout(tmp_path: Path) -> None:
    path, done = tmp_path / "s", threading.Event()
    with server(path, lambda _: assert_set(done)):
        with pytest.raises(TimedOutError) as fault:
            ask(path, "status", {}, 0.05)
        done.set()
    assert fault.value.code == "timeout"


def assert_set(event: threading.Event) -> None:
    assert event.wait(30)


def test_closing_the_events_hangs_up(tmp_path: Path) -> None:
    path, left = tmp_path / "s", threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(b'{"event": {"n": 1}}\n')
        if connection.recv(1) == b"":
            left.set()

    with server(path, serve):
        events = call(path, "ask", {})
        assert next(events) == {"n": 1}
        events.close()
        assert left.wait(30)


def test_a_refusal_of_a_newer_node_without_hint_is_still_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with server(path, lambda connection: connection.sendall(json.dumps({"ok": False, "code": "x"}).encode() + b"\n")):
        with pytest.raises(RefusedError) as fault:
            ask(path, "status", {})
        assert fault.value.code == "x"


def test_nobody_at_the_socket_means_no_node_runs(tmp_path: Path) -> None:
    (tmp_path / "stale").write_text("")
    for name in ("stale", "missing"):
        with pytest.raises(NotRunningError) as fault:
            ask(tmp_path / name, "status", {})
        assert fault.value.code == "not-running"
