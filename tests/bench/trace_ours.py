"""One measurement in a process of its own: the whole report on traces, in seconds and bytes."""

import json
import os
import resource
import sys
from pathlib import Path
from time import monotonic

from kopeck.trace.files import TraceFile
from kopeck.trace.parallel_reading import read_summaries
from kopeck.trace.report import report_of
from tests.bench.process_usage import peak_memory_bytes


def main() -> None:
    files = [TraceFile(Path(path), path) for path in sys.argv[1:]]
    began = monotonic()
    report = report_of(read_summaries(files, lambda: None).measured)
    seconds = monotonic() - began
    part = report.ranks[0].summary.breakdown
    overlap = 100 * part.overlap_ratio if part and part.overlap_ratio is not None else None
    print(json.dumps({"seconds": seconds, "bytes": _peak_bytes(), "overlap_percent": overlap}))


def _peak_bytes() -> int:
    """Of this process and its helpers together, as if each had its peak at once."""
    helpers = len(os.sched_getaffinity(0)) - 1
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return peak_memory_bytes(os.getpid()) + helpers * largest


if __name__ == "__main__":
    main()
