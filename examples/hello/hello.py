"""Greets whoever is named in the goal. The smallest agent: one function, one skill."""

from ioa_p2p.adapters.agent import skill


@skill("text.greet", outputs=["text.greeting"], description="Say hello to the person named in the goal.")
def greet(task, progress):
    progress(0.5, "thinking of a greeting")
    return f"Hello, {task.goal or 'world'}!"
