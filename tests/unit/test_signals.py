"""PID 1 never hears of a signal that came before it was blocked or handled.

So launcher and sidecar block those that end them before they import what takes time.
"""

import subprocess
import sys

import pytest

FIRST_IMPORTS = """
import runpy, signal, sys, types
def main():
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    print(*sorted(each.name for each in blocked))
    print(*sorted(name for name in sys.modules if name.startswith("kopeck")))
    return 0
package, module = sys.argv[1:]
sys.modules[f"{package}.{module}"] = types.SimpleNamespace(main=main)
runpy.run_module(package, run_name="__main__")
"""


@pytest.mark.parametrize(
    ("package", "module", "signals"),
    [
        ("kopeck_trainer", "launcher", ["SIGCHLD", "SIGINT", "SIGTERM"]),
        ("kopeck_exporter", "sidecar", ["SIGINT", "SIGTERM"]),
    ],
)
def test_signals_are_blocked_before_anything_is_imported_that_takes_time(
    package: str, module: str, signals: list[str]
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", FIRST_IMPORTS, package, module],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout.splitlines()
    assert told[0].split() == signals
    imported = {package, f"{package}.signals", f"{package}.{module}"}
    assert set(told[1].split()) - {f"{package}.__main__"} == imported
