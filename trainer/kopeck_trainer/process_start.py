"""When this process began, which is before its first line of Python."""

import os
import time
from pathlib import Path
from time import monotonic

_START_TICKS = 19
"""Index of `starttime` behind the name in /proc/PID/stat, see proc(5): ticks since the boot."""


def process_started_at() -> float:
    """On the monotonic clock, to 10 ms; now, where Linux does not tell."""
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2]
        ticks = int(after_name.split()[_START_TICKS])
    except (OSError, ValueError, IndexError):
        return monotonic()
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    age_seconds = since_boot - ticks / os.sysconf("SC_CLK_TCK")
    return monotonic() - max(0.0, age_seconds)
