"""The folder of a run: an agent cannot make the node read anything else."""

import os
import stat
from pathlib import Path

import pytest

from ioa_p2p.adapters.base import Attachment
from ioa_p2p.adapters.lines import File
from ioa_p2p.adapters.scratch import Scratch
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import limits


@pytest.fixture
async def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = await Scratch.open()
    yield made
    await made.aclose()
    assert os.listdir(tmp_path) == []


def set_traps(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    with open(folder / "huge", "wb") as sparse:
        sparse.truncate(4 * limits.ATTACHMENT_BYTES_MAX)
    (folder / "half").write_bytes(bytes(limits.ATTACHMENT_BYTES_MAX // 2 + 1))


@pytest.mark.parametrize(
    "file", ["link", "pipe", "folder", "missing", "../x", "/etc/hostname", "", ".", "..", "a\0b", "x" * 999]
)
async def test_only_a_plain_file_of_the_folder_is_read(scratch: Scratch, file: str) -> None:
    set_traps(scratch.folder)
    with pytest.raises(AdapterError) as caught:
        await scratch.take([File("a", "t", file)])
    assert caught.value.code == "bad-output"


@pytest.mark.parametrize("files", [["huge"], ["half", "half"]])
async def test_all_files_together_are_bounded(scratch: Scratch, files: list[str]) -> None:
    set_traps(scratch.folder)
    with pytest.raises(AdapterError) as caught:
        await scratch.take([File("a", "t", file) for file in files])
    assert caught.value.code == "oversized"


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", ".bashrc", "a\nb", "", "x" * 5_000])
async def test_a_strange_name_from_a_peer_becomes_a_plain_file(scratch: Scratch, name: str) -> None:
    (put,) = await scratch.put([Attachment(name, "t", b"data")])
    assert put == File(name, "t", "in-0")
    assert (scratch.folder / "in-0").read_bytes() == b"data"
    assert os.listdir(scratch.folder) == ["in-0"]


async def test_equal_names_do_not_overwrite_one_another(scratch: Scratch) -> None:
    put = await scratch.put([Attachment("a.txt", "t", b"1"), Attachment("a.txt", "t", b"2")])
    assert [file.file for file in put] == ["in-0-a.txt", "in-1-a.txt"]


async def test_nobody_else_may_look_into_the_folder(scratch: Scratch) -> None:
    assert stat.S_IMODE(os.stat(scratch.folder).st_mode) == 0o700


async def test_a_full_or_missing_temporary_folder_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/no-such-folder")
    with pytest.raises(AdapterError) as caught:
        await Scratch.open()
    assert caught.value.code == "no-scratch"
    assert caught.value.hint
