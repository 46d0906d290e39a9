"""A node's memory on a disk that changes bits, cuts files short, or is put back from a backup."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import StorageError
from ioa_p2p.node import memory, place
from ioa_p2p.node.memory import Memory, open_memory
from ioa_p2p.storage.base import Storage
from ioa_p2p.storage.seal import seal_of
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.team.decisions import spaces
from ioa_p2p.team.machine import SPACE, TeamRow
from ioa_p2p.wire import codec, limits

NODE = bytes(range(32))
TEAMS = (b"one team of 16 B", b"two team of 16 B")
FLIPS = 120  # bits, each in a file of its own


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.db"


def rows() -> list[Save]:
    """Two teams with votes and logs, what they said, and rows of the node's own."""
    dice, saves = random.Random(1), list[Save]()
    for team in TEAMS:
        log, vote, *_ = spaces(team)
        saves.append(Save(SPACE, team, codec.encode(TeamRow(b"founding of" + team))))
        saves += [Save(vote, b"state", dice.randbytes(60)), Save(vote, b"commit", dice.randbytes(8))]
        saves += [Save(log, number.to_bytes(8), dice.randbytes(700)) for number in range(1, 41)]
        saves += [Save(f"chat/{team.hex()}/aa/0", number.to_bytes(8), dice.randbytes(400)) for number in range(1, 10)]
    return [*saves, Save("dht/seq", b"agent", bytes(8))]


def fill(path: Path) -> None:
    """Closed cleanly, then opened and left as kill -9 leaves it: some in the file, the newest in the WAL."""
    with closing(open_memory(path, NODE).storage) as storage:
        storage.commit(rows()[:-5])
    alive = open_memory(path, NODE).storage
    for save in rows()[-5:]:
        alive.commit([save])
    kept = {file: file.read_bytes() for file in path.parent.iterdir()}
    alive.close()
    for file, content in kept.items():
        file.write_bytes(content)


def content(storage: Storage) -> dict[tuple[str, bytes], bytes]:
    return {(space, key): value for space in storage.spaces() for key, value in storage.scan(space) if space != "node"}


def doubted(storage: Storage) -> set[bytes]:
    return {team for team, row in storage.scan(SPACE) if codec.decode(row, TeamRow).lost_disk}


def flip(file: Path, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


def overwrite(path: Path, space: str, key: bytes, change: str, value: object) -> None:
    """In one column of one row, behind the store's back."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE rows SET {change} = ? WHERE space = ? AND key = ?", (value, space, key))


def closed(path: Path) -> None:
    with closing(open_memory(path, NODE).storage) as storage:
        storage.commit(rows())


def reopened(path: Path) -> Memory:
    found = open_memory(path, NODE)
    found.storage.close()
    return found._replace(storage=SqliteStorage(path))


def test_a_flipped_bit_anywhere_loses_nothing_unseen_and_never_a_vote(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T20: whatever is not as it was is told, and the teams concerned are in doubt."""
    monkeypatch.setattr(memory, "place_of", lambda path: bytes(32))  # each file is a copy, which would be told
    fill(path)
    whole = {(save.space, save.key): save.value for save in rows()}
    good, dice, losses = {file: file.read_bytes() for file in tmp_path.iterdir()}, random.Random(3), 0
    for _ in range(FLIPS):
        for file in tmp_path.iterdir():
            file.unlink()
        for file, data in good.items():
            file.write_bytes(data)
        victim = dice.choice([file for file in good if file.suffix != ".seal"])
        flip(victim, dice.randrange(8 * len(good[victim])))
        found = open_memory(path, NODE)
        losses += bool(found.losses)
        left, doubts = content(found.storage), doubted(found.storage)
        found.storage.close()
        for team in TEAMS:
            own = {row: value for row, value in whole.items() if row[0] in spaces(team)}
            intact = all(left.get(row) == value for row, value in own.items())
            assert intact or team in doubts or (SPACE, team) not in left, f"{victim.name}: a vote may be given twice"
        unseen = {row for row, value in whole.items() if left.get(row) != value}
        assert not unseen or found.losses, f"{victim.name}: {unseen} lost unseen"
    assert losses > FLIPS // 3


def test_a_row_that_changed_costs_its_team_the_vote_and_no_other(path: Path) -> None:
    closed(path)
    log, vote, *_ = spaces(TEAMS[0])
    overwrite(path, log, (3).to_bytes(8), "value", bytes(700))
    found = reopened(path)
    assert doubted(found.storage) == {TEAMS[0]}
    assert list(found.storage.scan(log)) == [], "a log with a hole is learned anew"
    assert len(list(found.storage.scan(spaces(TEAMS[1])[0]))) == 40
    assert found.storage.get("dht/seq", b"agent") == bytes(8)
    assert len(list(found.storage.scan(vote))) == 2
    found.storage.close()


def test_a_row_whose_name_changed_costs_every_team_the_vote(path: Path) -> None:
    closed(path)
    overwrite(path, spaces(TEAMS[0])[1], b"state", "key", b"stat!")
    found = reopened(path)
    assert doubted(found.storage) == set(TEAMS)
    found.storage.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"garbage" * 500,
        lambda data: data[:5000],
        lambda data: data[:50],
        lambda data: b"",
        lambda data: data[:4096] + bytes(len(data) - 4096),
        lambda data: data[:8192] + b"\xff" * 4096 + data[12288:],
    ],
    ids=["garbage", "cut short", "cut in its header", "emptied", "zeroed", "one page overwritten"],
)
def test_a_damaged_file_is_set_aside_and_the_node_goes_on(path: Path, spoil: Callable[[bytes], bytes]) -> None:
    closed(path)
    spoiled = spoil(path.read_bytes())
    path.write_bytes(spoiled)
    found = open_memory(path, NODE)
    (loss,) = found.losses
    assert "damaged" in loss.text
    (aside,) = path.parent.glob("node.db.damaged-*")
    assert aside.read_bytes() == spoiled
    assert str(aside) in loss.hint
    assert doubted(found.storage) == {team for team, _ in found.storage.scan(SPACE)}, "no team votes"
    found.storage.commit([Save("s", b"k", b"v")])
    found.storage.close()
    again = open_memory(path, NODE)
    assert again.losses == (), "told once, by the start that found it"
    assert again.storage.get("s", b"k") == b"v"
    again.storage.close()


def test_a_page_that_is_lost_leaves_the_rows_of_the_others(path: Path) -> None:
    closed(path)
    data = bytearray(path.read_bytes())
    data[-4096:] = bytes(4096)
    path.write_bytes(data)
    found = open_memory(path, NODE)
    assert len(content(found.storage)) > len(rows()) // 2
    found.storage.close()


def test_a_store_whose_end_was_cut_off_is_noticed_though_it_is_sound(path: Path) -> None:
    """SQLite drops a WAL from its first damaged frame on, and says nothing."""
    fill(path)
    Path(f"{path}-wal").unlink()
    found = open_memory(path, NODE)
    assert "it ends at commit" in found.losses[0].text
    assert doubted(found.storage) == {team for team, _ in found.storage.scan(SPACE)} != set()
    found.storage.close()


def test_a_file_that_is_gone_while_its_seal_stands_is_told(path: Path) -> None:
    closed(path)
    path.unlink()
    found = open_memory(path, NODE)
    assert "gone" in found.losses[0].text
    found.storage.close()
    assert open_memory(path, NODE).losses == ()


def test_a_damaged_seal_costs_nothing(path: Path) -> None:
    closed(path)
    seal_of(path).write_bytes(b"\xff" * 12)
    assert open_memory(path, NODE).losses == ()


def test_a_crash_while_a_damaged_file_is_replaced_is_no_way_to_forget(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seal goes last: until then the damage is seen again."""
    closed(path)
    overwrite(path, spaces(TEAMS[0])[1], b"state", "value", b"?")
    replace = Path.replace

    def die(source: Path, target: Path) -> Path:
        if target == path:
            raise KeyboardInterrupt
        return replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            open_memory(path, NODE)
    found = open_memory(path, NODE)
    assert found.losses
    assert doubted(found.storage) == {team for team, _ in found.storage.scan(SPACE)}
    found.storage.close()


def test_only_the_newest_damaged_files_are_kept(path: Path) -> None:
    for number in range(limits.DAMAGED_FILES_MAX + 2):
        path.write_bytes(b"wreck %d" % number)
        open_memory(path, NODE).storage.close()
    kept = sorted(path.parent.glob("node.db.damaged-*"))
    assert [file.read_bytes() for file in kept] == [b"wreck 2", b"wreck 3", b"wreck 4"]


def test_a_copied_folder_is_noticed_and_votes_in_no_team_of_before(path: Path, tmp_path: Path) -> None:
    closed(path)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (path, seal_of(path)):
        shutil.copy2(file, copy / file.name)
    found = open_memory(copy / path.name, NODE)
    assert "copied" in found.losses[0].text
    assert doubted(found.storage) == set(TEAMS)
    assert content(found.storage).keys() == {(save.space, save.key) for save in rows()}, "nothing is dropped"
    found.storage.close()
    assert open_memory(path, NODE).losses == (), "the one that was copied goes on as before"
    assert open_memory(copy / path.name, NODE).losses == (), "told once"


def test_a_backup_put_back_in_its_place_is_noticed(path: Path, tmp_path: Path) -> None:
    closed(path)
    backup = tmp_path / "backup.tar"
    shutil.copy2(path, backup)
    shutil.copy2(seal_of(path), tmp_path / "backup.seal")
    open_memory(path, NODE).storage.close()
    path.unlink()
    shutil.copy2(backup, path)
    shutil.copy2(tmp_path / "backup.seal", seal_of(path))
    found = open_memory(path, NODE)
    assert "backup" in found.losses[0].text
    assert doubted(found.storage) == set(TEAMS)
    found.storage.close()


def test_another_machine_is_another_place(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        machine = tmp_path / name
        machine.write_text(name)
        monkeypatch.setattr(place, "MACHINE_ID", machine)
        found = open_memory(path, NODE)
        assert bool(found.losses) == (name == "second")
        found.storage.close()
    monkeypatch.setattr(place, "MACHINE_ID", tmp_path / "none")
    assert open_memory(path, NODE).losses == (), "a machine without a name proves nothing"


def test_the_memory_of_another_key_is_refused_and_left_alone(path: Path) -> None:
    closed(path)
    before = path.read_bytes()
    with pytest.raises(StorageError) as refused:
        open_memory(path, bytes(32))
    assert refused.value.code == "other-key"
    assert refused.value.hint
    assert path.read_bytes() == before


def test_a_row_that_the_disk_changes_under_a_running_node_is_left_out_and_told(path: Path) -> None:
    closed(path)
    storage = SqliteStorage(path)
    connection = storage._connection
    assert connection is not None
    connection.execute("UPDATE rows SET value = x'00' WHERE space = 'dht/seq'")
    assert storage.get("dht/seq", b"agent") is None
    assert list(storage.scan("dht/seq")) == []
    assert storage.damaged == {"dht/seq"}
    storage.close()
