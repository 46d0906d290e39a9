"""`ioa-p2p ask`: give the mesh a goal, watch the team work, read the answer."""

import time
from typing import Any

import click

from ioa_p2p.cli.budget import Budget, cost_text
from ioa_p2p.cli.here import Here, node_command
from ioa_p2p.cli.seconds import Seconds
from ioa_p2p.errors import UsageError

SECOND_CTRL_C_S = 2.0


@node_command()
@click.argument("goal", required=False)
@click.option("--timeout", "timeout_s", type=Seconds(1, 86_400), default=600.0, show_default=True,
              help="Seconds the team has.")  # fmt: skip
@click.option(
    "--budget", type=Budget(), help="What it may cost at most; money in units.  tokens=20000,money=0.25,calls=30"
)
@click.option("--witness", "witnesses", metavar="NODE", multiple=True,
              help="A third device that keeps the team's decisions and votes, and does no work.")  # fmt: skip
@click.option("--key", help="Any text of yours: asked again under it, as after a crash, it is the same team.")
@click.option("--detach", is_flag=True, help="Return when the team works; `team show` and --resume tell the rest.")
@click.option("--resume", is_flag=True, help="Go on watching the team named in place of GOAL, or the newest.")
def command(
    here: Here,
    goal: str | None,
    timeout_s: float,
    budget: dict[str, int] | None,
    witnesses: tuple[str, ...],
    key: str | None,
    detach: bool,
    resume: bool,
) -> int:
    """Give the mesh GOAL, watch the team that forms, print its answer. Ctrl-C once detaches, twice cancels."""
    if not (goal or resume):
        raise UsageError("no-goal", "say what to do", '`ioa-p2p ask "How are my devices doing?"`')
    if resume:
        return _watch(here, "resume", {"team": goal} if goal else {}, timeout_s)
    extras = {"budget": budget, "key": key, "witness": list(witnesses)}
    args = {"goal": goal, "timeout_s": timeout_s, "detach": detach, **{k: v for k, v in extras.items() if v}}
    return _watch(here, "ask", args, timeout_s)


def _watch(here: Here, verb: str, args: dict[str, Any], timeout_s: float) -> int:
    from ioa_p2p.cli.progress import Progress
    from ioa_p2p.cli.stream import events

    progress = Progress(here.out)
    try:
        result = events(here.call(verb, args, wait_s=timeout_s + 60.0), progress.show)
    except KeyboardInterrupt:
        progress.end()
        return _interrupted(here, progress.team)
    progress.end()
    here.out.result(result, answer_text(result))
    if hint := _hint(result, progress.refusals):
        here.out.say(f"hint:  {here.spelt(hint)}")
    return _exit_code(result)


def _hint(result: dict[str, Any], refusals: set[str]) -> str:
    """The next step after a goal that got no team."""
    if result.get("why") == "nobody-found":
        return "`ioa-p2p find WORDS` shows what the mesh offers, `ioa-p2p doctor` whether this node has found it"
    if result["outcome"] == "failed" and "not-allowed" in refusals:
        return "a node works for those it allows: put the node id of `ioa-p2p id` here into `allow` there, then HUP it"
    return ""


def _interrupted(here: Here, team: str) -> int:
    """Once: the team goes on without us. Twice: it is cancelled."""
    try:
        here.out.event({"kind": "detaching", "team": team})
        here.out.say(f"detaching; the team goes on. Ctrl-C within {SECOND_CTRL_C_S:.0f} s cancels it")
        time.sleep(SECOND_CTRL_C_S)
    except KeyboardInterrupt:
        here.out.result(here.ask("cancel", {"team": team}), f"team {team} cancelled")
        return 130
    text = here.spelt(f"watch again with `ioa-p2p ask --resume {team}`")
    here.out.result({"team": team, "outcome": "detached"}, text)
    return 130


def answer_text(result: dict[str, Any]) -> str:
    """The answer, its files, who did what and what it cost, for people."""
    lines = [str(result.get("answer", "")) or f"team {result['team']}: {result['outcome']}"]
    lines += [f"file     {file['path']}" for file in result.get("files", [])]
    lines += [
        f"credit   {credit['agent']}@{credit['node'][:8]}: {credit['skill']} x{credit.get('tasks', 1)}"
        f"{_unless_done(credit)}"
        for credit in result.get("credits", [])
    ]
    if cost := cost_text(result.get("cost", {})):
        lines.append(f"cost     {cost}")
    return "\n".join(lines)


def _unless_done(credit: dict[str, Any]) -> str:
    state = credit.get("state", "succeeded")
    return "" if state == "succeeded" else f", {state}"


def _exit_code(result: dict[str, Any]) -> int:
    return {"concluded": 0, "detached": 0, "expired": 4}.get(result["outcome"], 1)
