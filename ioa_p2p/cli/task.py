"""`ioa-p2p task`: the tasks this node gave or works on."""

import click

from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.seconds import Seconds


@click.group()
def command() -> None:
    """The tasks this node gave or works on."""


@node_command(command, name="list")
@click.option("--open", "only_open", is_flag=True, help="Only tasks that are not finished.")
@click.option("--team", metavar="TEAM", help="Only tasks of this team.")
@click.option("--dead", is_flag=True, help="Only dead letters, and tasks of which nobody knows whether they were done.")
def list_tasks(here: Here, only_open: bool, team: str | None, dead: bool) -> None:
    """All tasks, newest first."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("tasks", {"open": only_open, "team": team, "dead": dead})
    rows = [(task["task"], task["skill"], task["state"], task["attempt"], task["agent"]) for task in answer["tasks"]]
    here.out.result(answer, columns(("TASK", "SKILL", "STATE", "ATTEMPT", "AGENT"), rows))


@node_command(command, name="show")
@click.argument("task")
def show(here: Here, task: str) -> None:
    """One task: who works on it, how far it is, what came out."""
    from ioa_p2p.cli.output import pairs

    answer = here.ask("task", {"task": task})
    here.out.result(answer, pairs(answer))


@node_command(command, name="cancel")
@click.argument("task")
def cancel(here: Here, task: str) -> None:
    """Cancel one task."""
    here.out.result(here.ask("cancel", {"task": task}), f"task {task}: cancel is under way")


@node_command(command, name="watch")
@click.argument("task")
@click.option("--patience", "patience_s", type=Seconds(0, 3_600), default=30.0, show_default=True,
              help="Seconds to try again while the node is away.")  # fmt: skip
def watch(here: Here, task: str, patience_s: float) -> None:
    """Watch one task until its end. Goes on where it was after a cut, and says what was missed."""
    from ioa_p2p.cli.output import pairs
    from ioa_p2p.cli.watching import Watching

    answer = Watching(here, task, patience_s).to_the_end()
    here.out.result(answer, pairs(answer))


@node_command(command, name="forget")
@click.argument("task")
def forget(here: Here, task: str) -> None:
    """Let go of a dead letter."""
    here.out.result(here.ask("forget", {"task": task}), f"task {task}: forgotten")


@node_command(command, name="retry")
@click.argument("task")
def retry(here: Here, task: str) -> None:
    """Ask again for the goal of a dead letter, with a new team. What it did before may be done twice."""
    answer = here.ask("retry", {"task": task})
    text = here.spelt(f"team {answer['team']} works on it; watch it with `ioa-p2p ask --resume {answer['team']}`")
    here.out.result(answer, text)
