"""The command line: one file a command, loaded when named.

Data goes to stdout, talk to stderr; `--json` gives one JSON object a line, the last of them
`{"ok": true, ...}` or `{"ok": false, "code", "message", "hint"}`. `--help` loads click alone.
"""

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from ioa_p2p.cli.output import Output
from ioa_p2p.errors import IoaError, UsageError

FAILED, USAGE, NOT_RUNNING, TIMED_OUT, INTERRUPTED = 1, 2, 3, 4, 130
COMMANDS = tuple("init up down status id peers seeds publish find show ask team task logs doctor wire".split())
_EXIT_CODES = {"not-running": NOT_RUNNING, "node-gone": NOT_RUNNING, "timeout": TIMED_OUT}


class LazyGroup(click.Group):
    """Imports `ioa_p2p.cli.<name>` when that command is named; its `command` is the click command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"ioa_p2p.cli.{cmd_name}").command


def _tell_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"ioa-p2p {version('ioa-p2p')}")
        except PackageNotFoundError:
            click.echo("ioa-p2p, not installed: run from its source")
        context.exit()


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 no node runs here, 4 timed out, 130 interrupted.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_tell_version, help="Show the version."
)
def program() -> None:
    """A hubless Internet of Agents: this machine's node, and what it asks of the others."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its code."""
    _mend_streams()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(arguments, Output(as_json="--json" in arguments)))


def run(arguments: list[str], out: Output) -> int:
    """One command; its faults are told on `out`. Returns the exit code."""
    try:
        code = program.main(arguments, prog_name="ioa-p2p", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as fault:
        out.say(fault.format_message())
        return USAGE
    except click.ClickException as fault:
        out.error("usage", fault.format_message(), _usage_hint(fault))
        return USAGE
    except IoaError as fault:
        out.fault(fault)
        return _EXIT_CODES.get(fault.code, USAGE if isinstance(fault, UsageError) else FAILED)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output left
        _drop_output()
        return 0
    except OSError as fault:
        if fault.filename is None:  # no file of ours: the output itself cannot be written
            _drop_output()
        out.error("system", str(fault), "look at the disk, the path and its permissions")
        return FAILED


def _mend_streams() -> None:
    """A stream that was closed swallows what is said; letters that an encoding lacks are written as escapes."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # it took a closed stream's number, which else the next file would get
    os.close(handle)
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What waits to be written goes nowhere, also at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _usage_hint(fault: click.ClickException) -> str:
    context = getattr(fault, "ctx", None)
    return f"see `{context.command_path if context else 'ioa-p2p'} --help`"
