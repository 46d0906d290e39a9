"""node/home.py: folders, key, lock, the socket's short path."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ioa_p2p.errors import StorageError, UsageError
from ioa_p2p.node.home import Home, find_home
from ioa_p2p.storage.inspection import inspect
from ioa_p2p.storage.sqlite import SqliteStorage


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home("kitchen", tmp_path / "config", tmp_path / "data")
    made.make_folders()
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_closed_to_others_and_the_key_to_all_but_its_owner(home: Home) -> None:
    seed = home.make_key()
    assert mode(home.config_folder) == mode(home.data_folder) == 0o700
    assert mode(home.key) == 0o600
    assert home.read_key() == seed
    assert len(seed) == 32
    assert home.key.parent != home.config.parent


def test_a_folder_left_open_is_closed(home: Home) -> None:
    home.data_folder.chmod(0o755)
    home.make_folders()
    assert mode(home.data_folder) == 0o700


def test_a_key_is_never_written_over(home: Home) -> None:
    seed = home.make_key()
    with pytest.raises(UsageError) as fault:
        home.make_key()
    assert fault.value.code == "key-exists"
    assert home.read_key() == seed


def test_a_node_that_was_never_set_up_has_no_lost_key(home: Home) -> None:
    with pytest.raises(UsageError, match="no such node") as fault:
        home.read_key()
    assert fault.value.code == "not-initialised"


def test_a_lost_key_is_not_made_anew(home: Home) -> None:
    home.config.touch()
    with pytest.raises(UsageError) as fault:
        home.read_key()
    assert fault.value.code == "key-missing"
    assert "--new-key" in fault.value.hint
    assert not home.key.exists()


def test_a_key_others_can_read_is_refused(home: Home) -> None:
    home.make_key()
    home.key.chmod(0o640)
    with pytest.raises(UsageError) as fault:
        home.read_key()
    assert fault.value.code == "key-open"
    assert fault.value.hint == f"chmod 600 {home.key}"


@pytest.mark.parametrize("text", [b"", b"ab", b"\xff" * 64, b"x" * 64, b"00" * 33])
def test_a_damaged_key_is_refused(home: Home, text: bytes) -> None:
    home.make_key()
    home.key.write_bytes(text)
    with pytest.raises(UsageError) as fault:
        home.read_key()
    assert fault.value.code == "key-damaged"


def test_a_key_with_one_changed_digit_is_no_other_node(home: Home) -> None:
    home.make_key()
    text = home.key.read_text()
    home.key.write_text(("1" if text[0] == "0" else "0") + text[1:])
    with pytest.raises(UsageError) as fault:
        home.read_key()
    assert fault.value.code == "key-damaged"


def test_a_key_that_was_typed_in_needs_no_check(home: Home) -> None:
    seed = home.make_key()
    home.key.write_text(seed.hex())
    assert home.read_key() == seed


def test_a_new_key_does_not_inherit_the_memory_of_the_old_one(home: Home) -> None:
    SqliteStorage(home.database).close()
    home.forget()
    assert [file.name.partition(".damaged-")[0] for file in home.data_folder.iterdir()] == ["node.db"]
    assert inspect(home.database) is None


def test_the_lock_keeps_a_second_process_out_and_names_the_first(home: Home) -> None:
    program = "import sys; from pathlib import Path; from ioa_p2p.node.home import Home\n"
    program += "home = Home('kitchen', *map(Path, sys.argv[1:]))\nwith home.lock():\n    print('held')"
    command = [sys.executable, "-c", program, str(home.config_folder), str(home.data_folder)]
    with home.lock():
        assert home.holder() == os.getpid()
        refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert f"already runs as process {os.getpid()}" in refused.stderr
    assert home.holder() is None
    assert subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout == "held\n"


def test_the_lock_is_refused_with_a_way_out(home: Home) -> None:
    with home.lock(), pytest.raises(StorageError) as fault, home.lock():
        pass
    assert fault.value.code == "locked"
    assert "`ioa-p2p down`" in fault.value.hint


def test_a_crash_leaves_no_lock_behind(home: Home) -> None:
    home.lock_file.write_text("4711\n")
    assert home.holder() is None
    with home.lock():
        assert home.lock_file.read_text() == f"{os.getpid()}\n"


def test_a_place_that_is_no_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as fault:
        Home("kitchen", tmp_path / "file" / "x", tmp_path / "file" / "x").make_folders()
    assert fault.value.code == "no-folder"
    assert "--home" in fault.value.hint


def test_the_socket_moves_to_a_short_folder_when_the_path_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Home("kitchen", Path("/x"), Path("/x"))
    assert short.socket == Path("/x/control.sock")
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    one, other = Home("a", deep / "a", deep / "a"), Home("b", deep / "b", deep / "b")
    assert one.socket.parent == Path("/run/user/1/ioa-p2p")
    assert len(os.fsencode(one.socket)) < 100
    assert one.socket != other.socket
    assert one.socket == Home("a", deep / "a", deep / "a").socket
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert one.socket.parent == Path(f"/tmp/ioa-p2p-{os.getuid()}")


def test_flags_choose_the_home_before_the_environment(tmp_path: Path) -> None:
    environment = {"IOA_P2P_HOME": str(tmp_path / "environment"), "IOA_P2P_NAME": "cellar"}
    assert find_home(None, None, environment).config == tmp_path / "environment" / "cellar" / "config.toml"
    assert find_home("kitchen", str(tmp_path), environment).data_folder == tmp_path / "kitchen"


def test_without_a_home_the_users_folders_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    home = find_home(None, None, {})
    assert home.config == tmp_path / "config" / "ioa-p2p" / "default" / "config.toml"
    assert home.key == tmp_path / "data" / "ioa-p2p" / "default" / "node.key"


@pytest.mark.parametrize("name", ["../x", "A", "a b", "-", "x" * 33])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as fault:
        find_home(name, "/x", {})
    assert fault.value.code == "bad-name"


def test_a_folder_where_the_lock_or_the_key_should_be_is_a_clear_error(home: Home) -> None:
    home.lock_file.mkdir()
    with pytest.raises(StorageError) as fault, home.lock():
        pass
    assert (fault.value.code, bool(fault.value.hint)) == ("no-folder", True)
    home.key.mkdir()
    with pytest.raises(UsageError) as damaged:
        home.read_key()
    assert (damaged.value.code, bool(damaged.value.hint)) == ("key-damaged", True)
