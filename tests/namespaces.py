"""The mark of tests that make network namespaces: skipped where that cannot be, and told so; never where
NEED_HOSTS is set, as `.ci/run` does."""

import os

import pytest

from examples.hosts import lacking

_why = lacking(nat=True)
needs_hosts = pytest.mark.skipif(bool(_why) and "NEED_HOSTS" not in os.environ, reason=f"no network namespaces: {_why}")
