"""Proof that the run-time lock installs on 64-bit ARM without a compiler: `python -m tests.aarch64`.

requirements.lock, hashes taken off ──> pip install --dry-run, wheels for aarch64 only ──> report
every wheel of the report must be pinned by hash in the lock. Needs the package index; offline it says so.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).parent.parent / "requirements.lock"
PURE_SDISTS = ("varint", "python-baseconv")
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
OFFLINE = ("Temporary failure in name resolution", "Name or service not known", "NewConnectionError")


def main() -> int:
    lock = LOCK.read_text()
    for python in PYTHONS:
        answer = resolve(pins(lock), python)
        if answer.returncode:
            if any(sign in answer.stderr for sign in OFFLINE):
                print("aarch64: skipped, the package index cannot be reached")
                return 0
            print(f"aarch64: Python {python}: {answer.stderr.strip()}")
            return 1
        strangers = unpinned(json.loads(answer.stdout), lock)
        if strangers:
            print(f"aarch64: Python {python}: not in the lock: {', '.join(strangers)}")
            return 1
        print(f"aarch64: Python {python}: {len(json.loads(answer.stdout)['install'])} wheels, all in the lock")
    return 0


def pins(lock: str) -> list[str]:
    """The lock's `name==version ; marker` lines without hashes and without the pure-Python sdists."""
    lines = re.findall(r"^([a-z0-9][^\s;]*==[^\\\n]*?) *\\?$", lock, re.MULTILINE)
    return [line for line in lines if line.split("==")[0] not in PURE_SDISTS]


def resolve(lines: list[str], python: str) -> "subprocess.CompletedProcess[str]":
    """What pip would install on aarch64, as a JSON report on stdout. Metadata is read, nothing installed."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder, "bare.txt")
        bare.write_text("\n".join(lines))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report=-", "--ignore-installed"]
        command += ["--no-deps", "--only-binary=:all:", f"--python-version={python}", f"--target={folder}/target"]
        command += [f"--platform={platform}" for platform in PLATFORMS]
        return subprocess.run([*command, "-r", str(bare)], capture_output=True, text=True, timeout=300)


def unpinned(report: dict, lock: str) -> list[str]:
    """File names of the report whose SHA-256 the lock does not hold."""
    files = [item["download_info"] for item in report["install"]]
    return [file["url"].rsplit("/")[-1] for file in files if file["archive_info"]["hashes"]["sha256"] not in lock]


if __name__ == "__main__":
    sys.exit(main())
