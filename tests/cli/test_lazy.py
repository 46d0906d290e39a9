"""What the command line loads, and when."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Command, Context, Group

from ioa_p2p.cli import COMMANDS, program
from ioa_p2p.cli.find import LEVELS
from ioa_p2p.cli.publish import HEADS
from ioa_p2p.node.trust import Level

HEAVY = ("asyncio", "libp2p", "trio", "numpy", "nacl", "msgspec", "msgpack", "kademlia", "psutil", "sqlite3")
REPORT = "import sys; from ioa_p2p.cli import run; from ioa_p2p.cli.output import Output; run({!r}, Output()); "
REPORT += "print(*sorted(sys.modules), sep='\\n')"


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["up", "--help"], ["--version"], ["status"]])
def test_help_and_plain_questions_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", REPORT.format(arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"IOA_P2P_HOME": str(tmp_path), "PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    loaded = set(shown.stdout.splitlines())
    assert "ioa_p2p.cli" in loaded
    assert not loaded & set(HEAVY)


def test_every_command_has_a_file_of_its_own_and_a_line_of_help() -> None:
    with Context(program) as context:
        commands = {name: program.get_command(context, name) for name in program.list_commands(context)}
    assert tuple(commands) == COMMANDS
    for name, command in commands.items():
        assert command is not None, name
        assert command.get_short_help_str(), name


def test_no_line_of_help_is_cut_off() -> None:
    for path, command in _commands(program, ()):
        if isinstance(command, Group):
            text = command.get_help(Context(command, info_name=" ".join(path)))
            cut = [line for line in text.splitlines()[1:] if line.endswith("...")]
            assert not cut, path


def _commands(command: Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Command]]:
    """It, and all below it."""
    yield path, command
    if isinstance(command, Group):
        with Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from _commands(below, (*path, name))


def test_find_explains_every_level_of_trust() -> None:
    command = program.get_command(Context(program), "find")
    assert command is not None
    lines = [line.split() for line in command.get_help(Context(command)).splitlines()]
    assert {level for level in LEVELS if [level] in [line[:1] for line in lines if len(line) > 3]} == set(LEVELS)
    assert set(LEVELS) == {str(level) for level in Level}


def test_publish_explains_every_column() -> None:
    command = program.get_command(Context(program), "publish")
    assert command is not None
    text = command.get_help(Context(command))
    assert all(f"\n    {head} " in text for head in HEADS[1:])


def leaves(command: Command) -> list[Command]:
    if isinstance(command, Group):
        return [leaf for below in command.commands.values() for leaf in leaves(below)]
    return [command]


def test_every_command_takes_name_home_and_json() -> None:
    with Context(program) as context:
        commands = [program.get_command(context, name) for name in COMMANDS]
    for leaf in (leaf for command in commands if command for leaf in leaves(command)):
        assert {"name", "home", "as_json"} <= {parameter.name for parameter in leaf.params}, leaf.name
