"""Tools for a model: one that counts, one that fails, one whose effect happens once, one that does not end."""

import time

from ioa_p2p.adapters.agent import Failed, skill


@skill("text.count", inputs=["text.plain"], outputs=["text.words"], description="Count words.")
def count(task):
    return len(task.inputs["text.plain"][0].split())


@skill("file.read", outputs=["text.plain"])
def read(task):
    return Failed("no-file", f"there is no {task.goal}")


@skill("mail.send", outputs=["mail.receipt"], effect="once")
def send(task):
    return task.key.hex()


@skill("time.wait", outputs=["time.over"])
def wait(task):
    time.sleep(600)
