"""node/config.py: order of origins, checks, agents, seeds."""

from pathlib import Path

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node.config import SETTINGS, Config, Seed, check_flags, load, parse_seed
from ioa_p2p.node.home import Home
from ioa_p2p.wire import ids

NODE = bytes(range(32))
TEXT = ids.node_text(NODE)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home("kitchen", tmp_path, tmp_path)


def written(home: Home, text: str) -> Home:
    home.config.write_text(text)
    return home


def test_an_empty_file_gives_every_default(home: Home) -> None:
    config = load(written(home, ""), {}, {})
    assert config == Config(home=home, origins={setting.key: "default" for setting in SETTINGS})
    assert config.allow == ()
    assert config.dht_host == "127.0.0.1"


def test_a_flag_wins_over_environment_and_environment_over_file(home: Home) -> None:
    written(home, 'mesh = "file"\nttl_s = 61\n[dht]\nport = 1\n')
    environment = {"IOA_P2P_DHT_PORT": "2", "IOA_P2P_MESH": "environment", "PATH": "x", "IOA_P2P_HOME": "x"}
    config = load(home, {"dht.port": "3"}, environment)
    assert (config.dht_port, config.mesh, config.ttl_s, config.link_port) == (3, "environment", 61, 0)
    assert config.origins["dht.port"] == "flag"
    assert config.origins["mesh"] == "environment IOA_P2P_MESH"
    assert config.origins["ttl_s"] == f"file {home.config}"
    assert config.origins["link.port"] == "default"


def test_a_misspelt_key_in_the_file_is_refused_with_the_nearest_known_one(home: Home) -> None:
    with pytest.raises(UsageError) as fault:
        load(written(home, "[dht]\nprot = 7000\n"), {}, {})
    assert fault.value.code == "unknown-setting"
    assert "'dht.prot'" in str(fault.value)
    assert str(home.config) in str(fault.value)
    assert fault.value.hint == "did you mean 'dht.port'?"


def test_a_key_that_resembles_none_is_told_where_all_stand(home: Home) -> None:
    with pytest.raises(UsageError) as fault:
        load(written(home, ""), {"nonsense": "1"}, {})
    assert "config.toml" in fault.value.hint
    assert "did you mean" not in fault.value.hint


def test_a_misspelt_variable_or_flag_is_refused_the_same_way(home: Home) -> None:
    written(home, "")
    with pytest.raises(UsageError, match="IOA_P2P_MESHH") as fault:
        load(home, {}, {"IOA_P2P_MESHH": "x"})
    assert fault.value.hint == "did you mean 'IOA_P2P_MESH'?"
    with pytest.raises(UsageError, match=r"--set.*ttl"):
        load(home, {"ttl": "70"}, {})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ttl_s = 59", "ttl_s"),
        ("rank = true", "rank"),
        ('ttl_s = "70"', "ttl_s"),
        ("[dht]\nport = 65536", "dht.port"),
        ('[dht]\nhost = "example.org"', "dht.host"),
        ("[link]\nhost = 5", "link.host"),
        ('profile = "fast"', "profile"),
        ('may_coordinate = "yes"', "may_coordinate"),
        ('mesh = ""', "mesh"),
        (f'mesh = "{"m" * 65}"', "mesh"),
        ('seeds = "x"', "seeds"),
        ("seeds = [5]", "seeds"),
        ('seeds = ["nobody@127.0.0.1:70"]', "seeds"),
        (f'allow = ["{TEXT[:-1]}"]', "allow"),
        ("[limits]\ntasks_max = 0", "limits.tasks_max"),
    ],
)
def test_a_wrong_value_is_refused_naming_key_and_file(home: Home, text: str, key: str) -> None:
    with pytest.raises(UsageError) as fault:
        load(written(home, text), {}, {})
    assert fault.value.code == "bad-setting"
    assert key in str(fault.value)
    assert str(home.config) in str(fault.value)
    assert fault.value.hint


def test_a_file_that_is_no_toml_is_refused_naming_the_line(home: Home) -> None:
    with pytest.raises(UsageError, match="line 1") as fault:
        load(written(home, "mesh = \n"), {}, {})
    assert fault.value.code == "bad-config"


def test_a_file_that_is_no_text_is_refused(home: Home) -> None:
    home.config.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError) as fault:
        load(home, {}, {})
    assert fault.value.code == "bad-config"


def test_a_missing_file_points_at_init(home: Home) -> None:
    with pytest.raises(UsageError) as fault:
        load(home, {}, {})
    assert fault.value.code == "not-initialised"
    assert "ioa-p2p init" in fault.value.hint


def test_lists_in_variables_are_split_at_commas_and_repeats_dropped(home: Home) -> None:
    seed = f"{TEXT}@127.0.0.1:7000"
    config = load(written(home, ""), {"allow": TEXT}, {"IOA_P2P_SEEDS": f"{seed}, {seed}"})
    assert config.seeds == (Seed(NODE, "127.0.0.1", 7000),)
    assert config.allow == (NODE,)


def test_agents_keep_their_options_for_their_adapter(home: Home) -> None:
    config = load(written(home, '[agents.meter]\nadapter = "python"\ncallable = "a:b"\nlist = [1]\n'), {}, {})
    agent = config.agents["meter"]
    assert (agent.name, agent.adapter, agent.options) == ("meter", "python", {"callable": "a:b", "list": [1]})


@pytest.mark.parametrize("text", ["agents=5", "[agents]\nmeter=5", "[agents.meter]\n", '[agents."A B"]\nadapter="x"'])
def test_an_agent_without_name_or_adapter_is_refused(home: Home, text: str) -> None:
    with pytest.raises(UsageError) as fault:
        load(written(home, text), {}, {})
    assert fault.value.code == "bad-agent"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "seed.example.org"])
def test_a_seed_reads_back_as_it_is_written(host: str) -> None:
    seed = Seed(NODE, host, 7000)
    assert parse_seed(str(seed)) == seed


@pytest.mark.parametrize("place", ["", "127.0.0.1", "127.0.0.1:0", "h:65536", ":7", "a b:7", "-x:7", "h:7x", "h:²"])
def test_a_seed_without_host_or_port_is_refused(place: str) -> None:
    with pytest.raises(UsageError):
        parse_seed(f"{TEXT}@{place}")


def test_checked_flags_are_given_back_as_toml_values() -> None:
    assert check_flags({"dht.port": "7", "allow": f"{TEXT},", "may_coordinate": "true"}) == {
        "dht.port": 7,
        "allow": [TEXT],
        "may_coordinate": True,
    }
    with pytest.raises(UsageError, match=r"dht\.port"):
        check_flags({"dht.port": "seven"})


def test_every_setting_is_a_field_and_accepts_its_own_default() -> None:
    for setting in SETTINGS:
        default = setting.default
        assert setting.kind.check(list(default) if isinstance(default, tuple) else default) == default
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)


@pytest.mark.parametrize("text", ["a=" + "[" * 100_000, "a=" + "{a=" * 100_000, ".".join(["a"] * 5_000) + "=1"])
def test_a_file_nested_without_end_is_refused(home: Home, text: str) -> None:
    with pytest.raises(UsageError) as fault:
        load(written(home, text), {}, {})
    assert (fault.value.code, bool(fault.value.hint)) == ("bad-config", True)


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS] + ["agents", "agents.x", "agents.x.adapter"])
def test_a_value_of_a_wrong_type_is_refused_with_a_way_out(home: Home, key: str) -> None:
    values = "-1 1.5 nan [1] [[[]]] {a=1} 1979-05-27 99999999999999999999999".split()
    for value in values:
        with pytest.raises(UsageError) as fault:
            load(written(home, f"{key} = {value}"), {}, {})
        assert fault.value.hint


def test_every_setting_is_read_by_some_part_of_the_node() -> None:
    package = Path(__file__).parents[2] / "ioa_p2p"
    readers = "".join(file.read_text() for file in package.rglob("*.py") if file.name != "config.py")
    assert [one.key for one in SETTINGS if f"config.{one.field}" not in readers] == []
