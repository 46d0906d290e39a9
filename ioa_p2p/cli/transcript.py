"""`ioa-p2p team export`, `ioa-p2p team replay`: a team's transcript as a file, and back as people read it.

file ──> replay ──> events ──> one line each (stdout) ──> the verdict, or what does not hold and where
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ioa_p2p.cli.here import Here, node_command

if TYPE_CHECKING:
    from ioa_p2p.node.replaying import Verdict


@node_command(name="export")
@click.argument("team")
@click.option("-o", "--output", "file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Where to.  [default: team-ID.transcript]")  # fmt: skip
@click.option("--blobs", is_flag=True, help="With the files that outcomes name, not only their hashes.")
def export(here: Here, team: str, file: Path | None, blobs: bool) -> None:
    """Write what TEAM decided and said to a file.

    As it was signed, so that anybody can check it."""
    path = (file or Path(f"team-{team[:8]}.transcript")).absolute()
    told = here.ask("team-export", {"team": team, "file": str(path), "blobs": blobs}, wait_s=None)
    missing = f"\nnot on this disk: {told['absent']} entries, lines or pieces; the file says which" * bool(
        told["absent"]
    )
    here.out.result(told, f"{told['file']}: {told['entries']} entries, {told['lines']} lines{missing}")


@node_command(name="replay")
@click.argument("file", type=click.File("rb"))
@click.option("--mesh", metavar="NAME", help="Refuse what was not signed for this mesh.")
def replay(here: Here, file: BinaryIO, mesh: str | None) -> None:
    """Check a team's file, and tell what is in it.

    Every signature, vote and decision; no node is needed."""
    from ioa_p2p.cli.retold import Retold
    from ioa_p2p.node import replaying
    from ioa_p2p.node.control import plain
    from ioa_p2p.wire.ids import network_id

    retold, told = Retold(), replaying.replay(file, network_id(mesh) if mesh else None)
    while True:
        try:
            event = plain(next(told))
        except StopIteration as end:
            return here.out.result(_result(end.value), _verdict(end.value))
        here.out.event(event)
        for line in retold.lines(event):
            here.out.line(line)


def _result(verdict: "Verdict") -> dict[str, Any]:
    from ioa_p2p.wire.ids import node_text

    return {
        "verified": True,
        "team": verdict.team.hex(),
        "network": verdict.network.hex(),
        "exporter": node_text(verdict.exporter),
        "exported_at": verdict.exported_at,
        "entries": verdict.entries,
        "terms": verdict.terms,
        "members": [node_text(node) for node in verdict.members],
        "lines": verdict.lines,
        "own_words": verdict.own_words,
        "hearsay": verdict.hearsay,
        "files": verdict.files,
        "absent": verdict.absent,
        "concluded": verdict.concluded,
        "head": verdict.head.hex(),
    }


def _verdict(verdict: "Verdict") -> str:
    """What holds first, then what it does not show."""
    from ioa_p2p.cli.output import pairs
    from ioa_p2p.wire.ids import node_text

    told = (verdict.entries, "entry entries"), (verdict.terms, "term terms"), (len(verdict.members), "member members")
    first = "verified: " + ", ".join(f"{count} {words.split()[count != 1]}" for count, words in told)
    rest = {
        "team": verdict.team.hex(),
        "network": verdict.network.hex(),
        "exported": f"by {node_text(verdict.exporter)}",
        "head": verdict.head.hex(),
        "lines": f"{verdict.lines} signed by their authors, {verdict.hearsay} only by a coordinator",
        "files": str(verdict.files or ""),
        "missing": f"{verdict.absent} entries, lines or files, as told above" if verdict.absent else "",
        "the end": "" if verdict.concluded else "not in it: the team worked on",
    }
    keys = "\n".join(f"          {node_text(node)}" for node in verdict.members)
    return "\n".join(["", first, pairs(rest), f"members   {keys.strip()}"])
