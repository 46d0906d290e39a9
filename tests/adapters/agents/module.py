"""The same foreign agent as a Python module: each behaviour is a plain generator with a @skill."""

import tempfile
from pathlib import Path

import command  # the neighbour: an agent's own folder is on its path

from ioa_p2p.adapters.agent import Attachment, Delta, Failed, Progress, Result, skill


def guise(name, behave):
    @skill(name, outputs=[name], description=f"Behaves as {name}.")
    def run(task, progress):
        with tempfile.TemporaryDirectory() as folder:
            for line in behave(fields(task, Path(folder))):
                yield said(line, Path(folder))

    return run


def fields(task, folder):
    for each in task.attachments:
        (folder / each.name).write_bytes(each.data)
    return {
        "id": task.id.hex(),
        "key": task.key.hex(),
        "attempt": task.attempt,
        "skill": task.skill,
        "goal": task.goal,
        "inputs": task.inputs,
        "folder": str(folder),
        "attachments": [{"name": a.name, "media_type": a.media_type, "file": a.name} for a in task.attachments],
    }


def said(line, folder):
    match line:
        case {"progress": fraction}:
            return Progress(fraction, line.get("note", ""))
        case {"delta": text}:
            return Delta(text)
        case {"failed": code}:
            return Failed(code, line["message"], line["retry"])
    files = [
        Attachment(each["name"], each["media_type"], (folder / each["file"]).read_bytes())
        for each in line.get("attachments", [])
    ]
    return Result(line["result"], tuple(files), line.get("summary", ""))


for _name, _behave in command.BEHAVIOURS.items():
    globals()[_behave.__name__] = guise(_name, _behave)
