"""`ioa-p2p task`: the tasks this node gave or works on."""

import click

from ioa_p2p.cli.here import Here, node_command


@click.group()
def command() -> None:
    """The tasks this node gave or works on."""


@node_command(command, name="list")
@click.option("--open", "only_open", is_flag=True, help="Only tasks that are not finished.")
@click.option("--team", metavar="TEAM", help="Only tasks of this team.")
def list_tasks(here: Here, only_open: bool, team: str | None) -> None:
    """All tasks, newest first."""
    from ioa_p2p.cli.output import columns

    answer = here.ask("tasks", {"open": only_open, "team": team})
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
