"""The one place that names the version of this software; what peers hear in a Hello."""

__version__ = "0.1.0"
SOFTWARE = f"ioa-p2p {__version__}"
