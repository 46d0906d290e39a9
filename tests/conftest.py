"""One Hypothesis profile for all: no deadlines (wall time is never asserted), failures print their replay."""

from hypothesis import settings

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")
