"""`python3 -m kopeck_trainer`: the launcher, PID 1 of the training container."""

import os
import sys
from contextlib import suppress

from kopeck_trainer.launcher import main

exit_code = main()
for stream in (sys.stdout, sys.stderr):
    with suppress(OSError):  # nobody reads any more
        stream.flush()
# At once: what Python would clear away takes 0.1 s, which are in no phase any more.
os._exit(exit_code)
