"""The exception tree: whose fault it is decides what happens next.

    IoaError
    ├── PeerError      a peer's fault: counted by `code`, dropped, never shown as a crash
    ├── UsageError     the caller's fault: says what to do in `hint`
    ├── NetError       a socket, port or link cannot be had
    ├── StorageError   the data folder cannot be read or written
    └── AdapterError   a foreign agent failed

Our own fault is an `assert`, never one of these.
"""


class IoaError(Exception):
    """Base of all errors. `code` is a stable kebab-case word for scripts, `hint` the next step."""

    def __init__(self, code: str, message: str = "", hint: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.hint = hint


class PeerError(IoaError):
    """Something a peer sent is wrong. The receiver counts `code` and drops the input."""


class UsageError(IoaError):
    """The caller asked for something that cannot be. `hint` says what to do instead."""


class NetError(IoaError):
    """A socket, port or link cannot be opened or kept."""


class StorageError(IoaError):
    """The data folder is locked, full, damaged or newer than this program."""


class AdapterError(IoaError):
    """A foreign agent cannot be loaded, died, or answered something unusable."""
