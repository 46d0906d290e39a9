"""The agents of the demo: real ones, each a file and a table."""
