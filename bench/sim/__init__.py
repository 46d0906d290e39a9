"""Simulations that are measured: `./dev sim NAME`."""
