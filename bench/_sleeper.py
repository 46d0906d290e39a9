"""An agent whose only task takes an hour and changes nothing: while it runs, its team is at rest."""

import time

from ioa_p2p.adapters.agent import skill

REST_S = 3_600.0


@skill("rest.wait", outputs=["rest.done"], description="Wait and rest for an hour.")
def wait(task):
    time.sleep(REST_S)
    return "rested"
