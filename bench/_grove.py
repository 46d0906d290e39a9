"""The lowest level of `./dev bench nested`: it measures for some seconds, and adds up what others tell.

GROVE_S: seconds that a run takes.
"""

import os
import time

from ioa_p2p.adapters.agent import skill


@skill("trunk.measure", outputs=["trunk.list"], description="Measure each trunk.")
def measure(task, progress):
    steps = 10
    for step in range(steps):
        progress(step / steps)
        time.sleep(float(os.environ.get("GROVE_S", "1")) / steps)
    return "3 trunks"


@skill("totals.add", inputs=["valley.total*"], outputs=["sum.text"], description="Add up the totals of every region.")
def add(task, progress):
    return f"{sum(int(total.split()[0]) for total in task.inputs['valley.total'])} trunks"
