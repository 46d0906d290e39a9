"""How foreign agents join: one contract (base.py), built-ins and strangers through one entry-point group."""
