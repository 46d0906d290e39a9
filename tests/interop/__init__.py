"""Foreign implementations against ours."""
