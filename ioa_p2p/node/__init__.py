"""One running node: the driver of the machines, configuration, local control, the worker of tasks."""
