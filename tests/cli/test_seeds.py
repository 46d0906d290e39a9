"""`ioa-p2p seeds`, and what init says of first contacts."""

from pathlib import Path

import pytest

from ioa_p2p.node.config import load
from ioa_p2p.node.home import Home
from tests.cli.conftest import NODE, Cli, FakeNode

SEEDS = tuple(f"{NODE}@seed{number}.example.org:4701" for number in (1, 2, 3))


@pytest.fixture
def steward(cli: Cli, home: Home) -> str:
    """Whoever runs the mesh signs here; the node beside it trusts that key."""
    signer = cli("init", "--name", "steward", "--mesh", "garden", "--json").last["node"]
    cli("init", "--mesh", "garden", "--seed-key", signer)
    return signer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "garden.list"


def sign(cli: Cli, file: Path, *arguments: str) -> dict[str, object]:
    return cli("seeds", "sign", "--name", "steward", "--out", str(file), *arguments, "--json").last


def test_a_list_that_is_signed_is_good_where_its_key_is_pinned(cli: Cli, file: Path, steward: str) -> None:
    made = sign(cli, file, *SEEDS[:2])
    assert (made["number"], made["seeds"], made["signer"]) == (1, list(SEEDS[:2]), steward)
    answer = cli("seeds", "check", str(file))
    assert answer.code == 0
    assert SEEDS[0] in answer.out
    assert "it is good" in answer.out


def test_the_next_list_has_the_next_number_and_an_older_one_is_not_taken(cli: Cli, file: Path, steward: str) -> None:
    sign(cli, file, SEEDS[0])
    old = file.read_text()
    assert sign(cli, file, SEEDS[1])["number"] == 2
    assert cli("seeds", "add", str(file)).code == 0
    file.write_text(old)
    answer = cli("seeds", "add", str(file), "--json")
    assert (answer.code, answer.last["code"]) == (2, "older")


def test_an_added_list_is_where_the_node_looks(cli: Cli, file: Path, steward: str, home: Home) -> None:
    sign(cli, file, *SEEDS)
    assert cli("seeds", "add", str(file), "--json").last["file"] == str(home.seed_list)
    assert home.seed_list.read_text() == file.read_text()


def test_the_list_of_a_stranger_is_shown_but_not_taken(cli: Cli, file: Path, steward: str, home: Home) -> None:
    stranger = cli("init", "--name", "stranger", "--mesh", "garden", "--json").last["node"]
    cli("seeds", "sign", "--name", "stranger", "--out", str(file), SEEDS[0])
    answer = cli("seeds", "check", str(file))
    assert answer.code == 1
    assert stranger in answer.out
    assert "does not trust" in answer.err
    assert cli("seeds", "check", str(file), "--json").last["code"] == "not-pinned"
    assert cli("seeds", "add", str(file), "--json").last["code"] == "not-pinned"
    assert not home.seed_list.exists()


def test_the_list_of_another_mesh_is_refused(cli: Cli, file: Path, steward: str) -> None:
    cli("init", "--name", "elsewhere", "--mesh", "desert")
    cli("seeds", "sign", "--name", "elsewhere", "--out", str(file), SEEDS[0])
    answer = cli("seeds", "check", str(file), "--json")
    assert (answer.code, answer.last["code"]) == (2, "bad-list")
    assert "another mesh" in answer.last["message"]


def test_a_list_that_was_changed_is_refused_in_plain_words(cli: Cli, file: Path, steward: str) -> None:
    sign(cli, file, SEEDS[0])
    text = file.read_text().strip()
    for changed in (text[:-2] + ("00" if text[-2:] != "00" else "01"), text[: len(text) // 4 * 2], "00" + text[2:]):
        file.write_text(changed)
        answer = cli("seeds", "check", str(file), "--json")
        assert answer.last["code"] == "bad-list"
        assert "changed after it was signed" in answer.last["message"]


def test_a_signed_list_tells_how_many_seeds_it_holds(cli: Cli, file: Path, steward: str) -> None:
    sign(cli, file, SEEDS[0])
    told = cli("seeds", "sign", "--name", "steward", "--out", str(file), SEEDS[0]).out
    assert told == f"{file} holds list number 2: 1 seed\n"
    assert "list number 2: 1 seed" in cli("seeds", "add", str(file)).out


@pytest.mark.parametrize("arguments", [[], ["nobody"], [SEEDS[0], "--days", "401"]])
def test_what_is_no_seed_is_not_signed(cli: Cli, file: Path, steward: str, arguments: list[str]) -> None:
    answer = cli("seeds", "sign", "--name", "steward", "--out", str(file), *arguments)
    assert answer.code == 2
    assert not file.exists()


def test_a_file_that_is_something_else_is_never_written_over(cli: Cli, file: Path, steward: str) -> None:
    file.write_text("my notes")
    assert sign(cli, file, SEEDS[0])["code"] == "bad-list"
    assert file.read_text() == "my notes"


def test_seeds_are_listed_with_where_they_are_from_and_whether_they_answer(cli: Cli, node: FakeNode) -> None:
    rows = [
        {"seed": SEEDS[0], "source": "dns", "addresses": ["192.0.2.1:4701"], "answers": True},
        {"seed": SEEDS[1], "source": "list", "addresses": [], "answers": False},
    ]
    node.answers("seeds", {"mesh": "garden", "seeds": rows, "notes": ["the seed list expired"]})
    answer = cli("seeds", "list")
    lines = [line.split() for line in answer.out.splitlines()]
    assert lines[1] == ["dns", "yes", SEEDS[0], "192.0.2.1:4701"]
    assert lines[2] == ["list", "no", SEEDS[1], "no", "address"]
    assert "the seed list expired" in answer.err


def test_a_signed_list_is_named_by_wire_show(cli: Cli, file: Path, steward: str) -> None:
    sign(cli, file, SEEDS[0])
    assert "SeedList" in cli("wire", "show", str(file)).out


# -- init


def test_init_says_how_to_get_a_seed_only_when_there_is_none(cli: Cli) -> None:
    assert "ioa-p2p id" in cli("init", "--name", "first").err
    for number, arguments in enumerate((["--seed", SEEDS[0]], ["--seed-dns", "a.example.org"], ["--seed-key", NODE])):
        assert "no seed" not in cli("init", "--name", f"n{number}", *arguments).err


def test_init_for_a_public_mesh_listens_everywhere_at_the_pace_of_the_internet(cli: Cli, home: Home) -> None:
    answer = cli("init", "--mesh", "garden", "--public", "--seed-dns", "seeds.example.org")
    config = load(home, {}, {})
    assert (config.mesh, config.dht_host, config.link_host, config.profile) == ("garden", "0.0.0.0", "0.0.0.0", "wan")
    assert config.seed_dns == ("seeds.example.org",)
    assert "this machine alone" not in answer.err


def test_init_says_that_it_looks_in_the_local_network(cli: Cli) -> None:
    assert "looks in the local network and waits for others" in cli("init", "--host", "192.168.1.12").err
    assert "this node waits for others" in cli("init", "--name", "alone").err


def test_init_for_a_public_mesh_tells_how_to_be_a_seed(cli: Cli) -> None:
    told = cli("init", "--name", "s1", "--public").err
    assert "`ioa-p2p up --name s1`, or to be a seed that others join by: `ioa-p2p up --seed --name s1`" in told
    assert "--seed" not in cli("init", "--name", "s2").err


def test_init_says_when_a_node_is_for_this_machine_alone(cli: Cli) -> None:
    assert "this machine alone" in cli("init").err
