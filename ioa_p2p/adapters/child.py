"""A worker process: lines in, lines out, and an end that always comes.

    spawn ──> [own session: process group = the child and all its children]
    send(line) ──> stdin        line() <── stdout (bounded)        stderr ──> only its end is kept
    stop ──> TERM to the group, grace, KILL to the group and to all that carry its mark

The group is killed even when the child itself is gone: what it started must not outlive it. The mark is a variable
in the environment, so it is inherited by those who leave the group too.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import limits

if TYPE_CHECKING:
    import psutil


MARK = "IOA_P2P_CHILD"
STRAY_LOOKS = 3


class Child:
    """Made by `spawn`; `stop` must be called in every case."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._mark = process, mark
        self._stdin, self._stdout = process.stdin, process.stdout
        self._errors = bytearray()
        self._listening = asyncio.create_task(self._listen(process.stderr))
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(cls, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> "Child":
        """Raises AdapterError('cannot-start') with a hint."""
        mark = secrets.token_hex(8)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=limits.ADAPTER_LINE_BYTES_MAX,
                cwd=folder,
                env={**env, MARK: mark},
                start_new_session=True,
            )
        except (OSError, ValueError) as fault:
            hint = f"is {command[0]!r} installed, and does the folder {str(folder)!r} exist?"
            raise AdapterError("cannot-start", f"{command[0]}: {fault}", hint) from None
        return cls(process, mark)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and self._stopping is None

    def send(self, line: bytes) -> None:
        """Queue a line; a dead child is noticed by `line`, not here. The size is bounded by the caller."""
        if not self._stdin.is_closing():
            self._stdin.write(line)

    def close_stdin(self) -> None:
        self._stdin.close()

    async def line(self) -> bytes:
        """The next line with its newline; b"" at the end. Raises AdapterError('oversized')."""
        try:
            return await self._stdout.readline()
        except ValueError:
            raise AdapterError("oversized", f"a line of more than {limits.ADAPTER_LINE_BYTES_MAX} bytes") from None

    async def death(self) -> str:
        """After the end of stdout: the exit code and the end of stderr, for people."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):  # it may have closed stdout and live on; `stop` sees to that
                await self._process.wait()
                await asyncio.wait([self._listening])  # which `stop` may cancel: that is not our cancel
        code = self._process.returncode
        how = "closed its output" if code is None else f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        last = bytes(self._errors).decode("utf-8", "replace").strip()
        return f"{how}: {last[-1_000:]}" if last else how

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    async def stop(self, grace_s: float, *, in_peace: bool = False) -> None:
        """End the whole group within about `grace_s`, twice that `in_peace`: first it may leave by itself, told by
        the end of its stdin. Goes on when the caller is cancelled. Idempotent."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace_s, in_peace))
        await asyncio.shield(self._stopping)

    async def _stop(self, grace_s: float, in_peace: bool) -> None:
        self.close_stdin()
        if in_peace:
            await self._wait(grace_s)
        self._signal_group(signal.SIGTERM)
        await self._wait(grace_s)
        self._signal_group(signal.SIGKILL)
        await asyncio.to_thread(_kill_strays, self._mark)
        await self._process.wait()
        self._listening.cancel()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(4_096):
            self._errors = (self._errors + chunk)[-limits.ADAPTER_STDERR_BYTES_MAX :]


def _kill_strays(mark: str) -> None:
    """Those that left the group by a session of their own, found by the mark they inherited. A second look catches
    what was started during the first."""
    import psutil  # lazily: only an end needs it

    for _ in range(STRAY_LOOKS):
        strays = [process for process in psutil.process_iter() if _has_mark(process, mark)]
        for process in strays:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if not strays:
            return


def _has_mark(process: "psutil.Process", mark: str) -> bool:
    import psutil

    with contextlib.suppress(psutil.Error, OSError):  # gone, or another user's
        return process.environ().get(MARK) == mark
    return False
