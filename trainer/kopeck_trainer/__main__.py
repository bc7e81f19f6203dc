"""`python3 -m kopeck_trainer`: the launcher, PID 1 of the training container."""

import os
import signal
import sys
from contextlib import suppress

from kopeck_trainer.signals import WATCHED_SIGNALS

# Before all else is imported: PID 1 never hears of a signal that it neither handles nor blocks,
# and a pod that was deleted would train on until its grace is over.
signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)

from kopeck_trainer.launcher import main  # noqa: E402

exit_code = main()
for stream in (sys.stdout, sys.stderr):
    with suppress(OSError):  # nobody reads any more
        stream.flush()
# At once: what Python would clear away takes 0.1 s, which are in no phase any more.
os._exit(exit_code)
