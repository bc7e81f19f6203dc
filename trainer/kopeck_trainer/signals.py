"""The signals that the launcher waits for.

They are blocked in it and taken one by one: no handler, so nothing can be missed or race.
"""

import signal

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
WATCHED_SIGNALS = STOP_SIGNALS | {signal.SIGCHLD}
