"""A foreign agent as a command: JSON lines on stdio, the standard library only, every way to behave badly.

A behaviour is a generator of lines. The Python guise (module.py) wraps the same behaviours.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

GRANDCHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


def echo(task):
    yield {"result": {"test.echo": {name: task[name] for name in ("goal", "inputs", "attempt", "key", "skill")}}}


def talk(task):
    yield {"progress": 0.25, "note": "a quarter"}
    yield {"delta": "one "}
    yield {"delta": "two"}
    yield {"progress": None, "note": "who knows"}
    yield {"result": {"test.talk": "one two"}, "summary": "counted"}


def refuse(task):
    yield {"failed": "no-sensor", "message": "there is none", "retry": False}


def files(task):
    made = []
    for each in task["attachments"]:
        data = Path(task["folder"], each["file"]).read_bytes()
        Path(task["folder"], "made").write_bytes(data[::-1])
        made.append({"name": f"reversed {each['name']}", "media_type": each["media_type"], "file": "made"})
    yield {"result": {"test.files": None}, "attachments": made}


def family(task):
    """Start children that ignore TERM, one in a session of its own, one without our environment; tell all pids."""
    children = [_grandchild(), _grandchild(start_new_session=True), _grandchild(env={})]
    yield {"delta": json.dumps([os.getpid(), *children])}
    time.sleep(600)


def stubborn(task):
    """Neither a cancel nor TERM moves it."""
    with contextlib.suppress(ValueError):  # only a main thread may
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    yield {"delta": json.dumps([os.getpid()])}
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(600)


def crash(task):
    yield {"delta": json.dumps([os.getpid(), _grandchild(), _grandchild(start_new_session=True)])}
    os.kill(os.getpid(), signal.SIGKILL)


def leave(task):
    print("my last words", file=sys.stderr, flush=True)
    os._exit(3)
    yield {}


def large(task):
    yield {"result": {"test.large": "x" * (2 * 1024 * 1024)}}


def flood(task):
    while True:
        yield {"progress": 0.5}


def noise(task):
    for _ in range(64):
        print("n" * 16_384, file=sys.stderr)
    yield {"result": {"test.noise": "quiet"}}


def meet(task):
    """Wait until as many runs as expected have come: only runs at the same time can end."""
    count, folder = task["goal"].split(" ", 1)
    Path(folder, task["id"]).touch()
    while len(os.listdir(folder)) < int(count):
        time.sleep(0.01)
    yield {"result": {"test.meet": "met"}}


def raw(task):
    """Write the goal as it is into the line protocol, and wait."""
    _write_raw(task["goal"].encode("utf-8", "surrogateescape") + b"\n")
    time.sleep(600)
    yield {}


def endless(task):
    """One line that never ends."""
    while True:
        _write_raw(b"x" * 65_536)
    yield {}


def _grandchild(**how) -> int:
    child = subprocess.Popen([sys.executable, "-c", GRANDCHILD], stdout=subprocess.PIPE, **how)
    child.stdout.readline()  # it ignores TERM from here on
    return child.pid


def _write_raw(data: bytes) -> None:
    """Into every pipe but stdin and stderr: wherever the protocol hides its own."""
    stderr = os.readlink("/proc/self/fd/2")
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # closed meanwhile, or a reading end
            pipe = os.readlink(f"/proc/self/fd/{number}")
            if number != 0 and pipe.startswith("pipe:") and pipe != stderr:
                os.write(number, data)


BEHAVIOURS = {
    f"test.{behave.__name__}": behave
    for behave in (echo, talk, refuse, files, family, stubborn, crash, leave, large, flood, noise, meet, raw, endless)
}


def main() -> None:
    task = json.loads(sys.stdin.readline())["task"]
    for line in BEHAVIOURS[task["skill"]](task):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
