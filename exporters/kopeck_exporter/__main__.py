"""`python3 -m kopeck_exporter`: the sidecar of a worker."""

import signal
import sys

from kopeck_exporter.signals import ENDING_SIGNALS

# Before all else is imported, which takes seconds of a tenth of a core: PID 1 never hears of a
# signal that it neither handles nor blocks, and its pod would stay until its grace is over.
signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)

from kopeck_exporter.sidecar import main  # noqa: E402

sys.exit(main())
