"""`doctor`: what is wrong, once each, with its cure."""

from typing import Any

from ioa_p2p.node.home import Home
from tests.cli.conftest import NODE, Cli, FakeNode


def doctor(cli: Cli) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for check in cli("doctor", "--json").last["checks"]:
        found.setdefault(check["name"], []).append(check)
    return found


def test_doctor_of_a_fresh_node_only_misses_the_running_node(cli: Cli) -> None:
    cli("init")
    answer = cli("doctor")
    assert answer.code == 1
    wrong = [name for name, checks in doctor(cli).items() if not all(check["ok"] for check in checks)]
    assert wrong == ["node"]
    assert "-> start it" in answer.out


def test_doctor_takes_in_what_the_running_node_finds(cli: Cli, node: FakeNode) -> None:
    cli("init")
    node.answers("doctor", {"checks": [{"name": "seeds", "ok": True, "detail": "2 of 2 answer", "hint": ""}]})
    answer = cli("doctor", "--json")
    assert answer.code == 0
    assert answer.last["healthy"] is True
    assert doctor(cli)["seeds"][0]["detail"] == "2 of 2 answer"


def test_doctor_tells_once_what_command_and_node_both_look_at(cli: Cli, node: FakeNode) -> None:
    cli("init")
    node.answers("doctor", {"checks": [{"name": "disk", "ok": True, "detail": "9 MiB free", "hint": ""}]})
    assert len(doctor(cli)["disk"]) == 1
    node.answers("doctor", {"checks": [{"name": "disk", "ok": False, "detail": "full", "hint": "make room"}]})
    assert [check["ok"] for check in doctor(cli)["disk"]] == [True, False]


def test_doctor_names_every_fault_with_its_cure(cli: Cli, home: Home) -> None:
    import socket

    cli("init")
    home.key.chmod(0o644)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        text = (
            f'seeds = ["{NODE}@no-such-host.invalid:7"]\n[dht]\nport = {port}\n[agents.a]\nadapter = "crystal-ball"\n'
        )
        home.config.write_text(text)
        checks = doctor(cli)
    assert checks["key"][0]["hint"].startswith("chmod 600")
    assert not checks["seed"][0]["ok"]
    assert "crystal-ball" in checks["agent a"][0]["detail"]
    assert not checks["port"][0]["ok"]
    assert "dht.port" in checks["port"][0]["hint"]
    assert checks["port"][1]["ok"]
    home.config.write_text("mesh = 5")
    assert doctor(cli)["config"][0]["ok"] is False


def test_doctor_of_a_node_that_was_never_set_up_says_just_that(cli: Cli) -> None:
    answer = cli("doctor", "--name", "nope", "--json")
    assert (answer.code, [check["detail"] for check in answer.last["checks"]]) == (1, ["no such node: 'nope'"])
    assert answer.last["checks"][0]["hint"] == "set it up: `ioa-p2p init --name nope`"


def test_doctor_says_that_a_node_goes_on_when_its_configuration_was_broken(
    cli: Cli, node: FakeNode, home: Home
) -> None:
    cli("init")
    node.answers("doctor", {"checks": []})
    home.config.write_text("mesh = 5")
    (config,) = doctor(cli)["config"]
    assert not config["ok"]
    assert "the node that runs goes on with what it read before" in config["detail"]


def test_doctor_tells_a_missing_agents_file_once(cli: Cli, node: FakeNode, home: Home) -> None:
    cli("init")
    with home.config.open("a") as file:
        file.write('[agents.bad]\nadapter = "python"\ntarget = "/nope.py"\n[agents.good]\nadapter = "process"\n')
    node.answers("doctor", {"checks": [{"name": "agent bad", "ok": False, "detail": "no such file: /nope.py"}]})
    told = doctor(cli)
    assert [check["detail"] for check in told["agent bad"]] == ["no such file: /nope.py"]
    assert told["agent good"][0]["ok"]


def test_doctor_finds_a_missing_agents_file_without_the_node(cli: Cli, home: Home) -> None:
    cli("init")
    with home.config.open("a") as file:
        file.write('[agents.bad]\nadapter = "python"\ntarget = "/nope.py:run"\n')
    assert [(check["ok"], check["detail"]) for check in doctor(cli)["agent bad"]] == [(False, "no such file: /nope.py")]
