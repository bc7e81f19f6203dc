"""What tests do inside of pods."""

from typing import Any

from tests.workplace import Workplace

_KILL_RANK = """
import contextlib, os, signal
for entry in os.listdir("/proc"):
    if entry.isdigit() and entry != str(os.getpid()):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if "kopeck_trainer.rank" in open(f"/proc/{entry}/cmdline").read():
                os.kill(int(entry), signal.SIGKILL)
"""


def kill_ranks(workplace: Workplace, pod: dict[str, Any]) -> None:
    """SIGKILL to every rank of a pod."""
    name = pod["metadata"]["name"]
    arguments = ["--namespace", workplace.namespace, "--container", "trainer"]
    workplace.cluster.kubectl("exec", name, *arguments, "--", "python3", "-c", _KILL_RANK)


def log_of(workplace: Workplace, pod: dict[str, Any]) -> str:
    """What a pod's trainer has said."""
    name = pod["metadata"]["name"]
    said: str = workplace.cluster.kubectl("logs", name, "-c", "trainer", "-n", workplace.namespace)
    return said
