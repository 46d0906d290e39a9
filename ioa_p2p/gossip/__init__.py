"""A team's channel: signed chains that merge, and blobs by hash, as one pure machine (machine.py)."""
