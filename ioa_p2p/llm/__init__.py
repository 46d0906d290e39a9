"""Language models: the port that planner and agents speak through, an endpoint behind it, a scripted stand-in."""
