"""What a team is: forming, the elected coordinator and its log, phases, tasks, as pure machines (machine.py)."""
