"""The signals that end an exporter.

Blocked and waited for, not handled: a handler may run while its thread holds the lock it needs.
"""

import signal

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)
