"""The two agents of bench.planner that work: one knows a river's gauge, the other writes notices."""

from ioa_p2p.adapters.agent import skill

LEVELS_CM = [212, 219, 231, 248, 262, 281]


@skill(
    "river.levels", outputs=["river.series"], description="Tell the river's water levels of the last six hours, in cm."
)
def levels():
    return LEVELS_CM


@skill(
    "notice.write",
    inputs=["river.series"],
    outputs=["notice.text"],
    description="Write a short public notice about the river from its water levels.",
)
def notice(task):
    (series,) = task.inputs["river.series"]
    return f"The river rose by {series[-1] - series[0]} cm in six hours and stands at {series[-1]} cm."
