"""What must last: one contract (base.py), in memory or in SQLite."""
