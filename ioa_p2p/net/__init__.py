"""How bytes move: two ports (ports.py), and what carries them: memory, UDP, libp2p, and faults around any."""
