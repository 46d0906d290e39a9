"""The only place that reads a clock for machines."""

import time

from ioa_p2p.effects import Now

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> Now:
    """Wall seconds, and seconds since boot with suspend counted where the OS can (Linux)."""
    boot = time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
    return Now(time.time(), boot)
