import subprocess
import sys
from time import monotonic

PROGRAM = """
import time
time.sleep(0.3)
from kopeck_trainer.process_start import process_started_at
print(process_started_at())
"""
ROUNDED_SECONDS = 0.02  # the kernel's clock ticks 100 times a second


def test_a_process_knows_when_it_was_started_however_late_it_asks() -> None:
    before = monotonic()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as process:
        after = monotonic()
        said, _ = process.communicate(timeout=60)
    assert before - ROUNDED_SECONDS <= float(said) <= after + ROUNDED_SECONDS
