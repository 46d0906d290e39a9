"""Planners: a read-only view of the team in, one typed Step out. They never send."""
