"""Networks with liars, crashes and crowds, one file a scenario: `./dev sim adversary`.

A scenario's module has `run(short: bool) -> dict[str, float]`, its figures by name, and `BARS`, a condition on each
("<= 0", ">= 0.999"). short: the form that the test suite runs, a few seconds of CPU; the bars hold in both. `CPU_BARS`,
where there are some, speak of CPU time and are left to the benchmark. `islands_*` of all scenarios are summed there.
"""
