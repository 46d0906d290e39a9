"""Greets whoever the goal ends with. The smallest agent: one function, one skill."""

from ioa_p2p.adapters.agent import skill


@skill("text.greet", outputs=["text.greeting"], description="Say hello to whoever the goal ends with.")
def greet(task, progress):
    progress(0.5, "thinking of a greeting")
    name = task.goal.split()[-1].strip(".?!")
    return f"Hello, {name}!"
