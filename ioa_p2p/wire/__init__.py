"""Every byte between nodes: frozen typed messages, and each bound with its reason. docs/wire.md."""
