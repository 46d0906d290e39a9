"""Short names for a model: members are m1, m2, ... in the roster's order, tasks t1, t2, ... in the order they began.

Shorter than keys, and the same for the whole life of a team: a task never moves to another name.
"""

from ioa_p2p.errors import PeerError
from ioa_p2p.steps import MemberView, TaskView, View


class Labels:
    def __init__(self, view: View) -> None:
        self._members = {f"m{place}": member for place, member in enumerate(view.members, 1)}
        self._tasks = {f"t{place}": task for place, task in enumerate(view.tasks, 1)}
        self._of_member = {(one.node, one.agent): label for label, one in self._members.items()}
        self._of_task = {task.id: label for label, task in self._tasks.items()}

    @property
    def members(self) -> dict[str, MemberView]:
        return self._members

    @property
    def tasks(self) -> dict[str, TaskView]:
        return self._tasks

    def of_member(self, node: bytes, agent: str) -> str:
        """Its label; one who left the team keeps its name alone."""
        return self._of_member.get((node, agent), agent)

    def of_task(self, task: bytes) -> str:
        return self._of_task[task]

    def member(self, label: str) -> MemberView:
        """Raises PeerError('bad-step')."""
        if label not in self._members:
            raise PeerError("bad-step", f"there is no member {label[:20]!r}; members are m1 to m{len(self._members)}")
        return self._members[label]

    def task(self, label: str) -> TaskView:
        """Raises PeerError('bad-step')."""
        if label not in self._tasks:
            known = f"tasks are t1 to t{len(self._tasks)}" if self._tasks else "no task was given out yet"
            raise PeerError("bad-step", f"there is no task {label[:20]!r}; {known}")
        return self._tasks[label]
