"""One Hypothesis profile for all: no deadlines (wall time is never asserted), failures print their replay. And Ctrl-C
ends a test run and the processes it starts, even where a shell put it in the background and so had it ignored."""

import signal

from hypothesis import settings

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
