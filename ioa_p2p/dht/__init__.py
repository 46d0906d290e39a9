"""Kademlia with signed records and sealed datagrams, as one pure machine (machine.py)."""
