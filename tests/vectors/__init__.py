"""Test vectors of the wire: *.json written by `make`, read by tests here and by anyone who writes another node."""
