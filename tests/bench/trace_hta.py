"""The same by Holistic Trace Analysis: reading, and its overlap. Run by the Python it is in."""

import json
import re
import sys
from pathlib import Path
from time import monotonic

from hta.trace_analysis import TraceAnalysis  # of an environment of its own


def main() -> None:
    began = monotonic()
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=str(Path(sys.argv[1]).parent))
    overlap = analysis.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"][0]
    seconds = monotonic() - began
    print(json.dumps({"seconds": seconds, "bytes": _peak_bytes(), "overlap_percent": overlap}))


def _peak_bytes() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main()
