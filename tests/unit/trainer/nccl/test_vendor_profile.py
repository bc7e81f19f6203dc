"""The script of a vendor's plugin is run in a real bash, and its variables are taken over."""

import os
import signal
from pathlib import Path

import pytest

from kopeck_trainer import exit_codes
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.nccl.vendor_profile import SCRIPTS, with_profile
from kopeck_trainer.signals import WATCHED_SIGNALS
from tests.unit.trainer.nccl.machine import a_file, environment_on, with_gpus
from tests.waiting import eventually

PATH = os.environ["PATH"]


def on(
    root: Path, script: str, where: str = SCRIPTS[0], **environ: str
) -> tuple[dict[str, str], list[str]]:
    a_file(root / where, script)
    return environment_on(with_gpus(root), PATH=PATH, **environ)


@pytest.mark.parametrize("where", SCRIPTS)
def test_what_the_script_sets_reaches_the_ranks(tmp_path: Path, where: str) -> None:
    script = (
        "[[ -n $NCCL_LIB_DIR ]] && declare -a names=(a b)\n"
        "echo chatter\n"
        "export NCCL_NET=gIB TWO_LINES=$'one\\ntwo' EMPTY=\n"
        'export LD_LIBRARY_PATH="$NCCL_LIB_DIR:$LD_LIBRARY_PATH"\n'
        "NOT_EXPORTED=1\n"
    )
    found, said = on(tmp_path, script, where, LD_LIBRARY_PATH="/mine")
    library = str((tmp_path / where).parent)
    assert found == {
        "PATH": PATH,
        "NCCL_NET": "gIB",
        "TWO_LINES": "one\ntwo",
        "EMPTY": "",
        "NCCL_LIB_DIR": library,
        "LD_LIBRARY_PATH": f"{library}:/mine",
    }
    assert said == []


def test_the_users_values_win(tmp_path: Path) -> None:
    found, _ = on(tmp_path, "export NCCL_PROTO=Simple NCCL_ALGO=Ring", NCCL_PROTO="LL")
    assert (found["NCCL_PROTO"], found["NCCL_ALGO"]) == ("LL", "Ring")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo the guest does not fit >&2; exit 3", "ends with code 3: the guest does not fit"),
        ("exit 1", "ends with code 1: no word"),
        ("if then", "ends with code 2"),
        ("return 4", "ends with code 4"),
    ],
)
def test_a_script_that_fails_sets_nothing_and_is_told(
    tmp_path: Path, script: str, sentence: str
) -> None:
    found, (said,) = on(tmp_path, f"export NCCL_NET=gIB\n{script}\n")
    assert "NCCL_NET" not in found
    assert sentence in said
    assert "NCCL starts without its settings" in said


def test_an_image_without_bash_is_told(tmp_path: Path) -> None:
    a_file(tmp_path / SCRIPTS[0], "export NCCL_NET=gIB")
    found, (said,) = environment_on(with_gpus(tmp_path), PATH=str(tmp_path))
    assert found == {"PATH": str(tmp_path)}
    assert "needs bash" in said


def test_no_script_is_run_without_gpus_or_for_one_worker(tmp_path: Path) -> None:
    a_file(tmp_path / SCRIPTS[0], "export NCCL_NET=gIB")
    assert environment_on(tmp_path, PATH=PATH) == ({"PATH": PATH}, [])
    assert environment_on(with_gpus(tmp_path), workers=1, PATH=PATH) == ({"PATH": PATH}, [])


def test_the_signals_that_the_launcher_blocks_do_not_hold_the_script(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)
    try:
        found, _ = on(tmp_path, "export NAMES=$(echo a; sh -c 'echo b')")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert found["NAMES"] == "a\nb"


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("echo waiting for the daemon >&2; sleep 1000", "waiting for the daemon"),
        ("while :; do :; done", "no word"),
        ("trap '' TERM INT HUP; sleep 1000", "no word"),
        ("sleep 1000 & export NCCL_NET=gIB", "no word"),
    ],
)
def test_a_script_that_does_not_end_stops_the_job_with_one_sentence(
    tmp_path: Path, script: str, last: str
) -> None:
    file = a_file(tmp_path / "hangs.sh", f"echo $BASHPID > {tmp_path}/pid\n{script}\n")
    with pytest.raises(ConfigurationError) as stopped:
        with_profile(file, {"PATH": PATH}, seconds=0.5)
    assert str(stopped.value) == (
        f"{file}: it has not ended after 0.5 s, its last words: {last}; "
        "see what it waits for, or take its mount out of spec.workers.template"
    )
    assert stopped.value.exit_code == exit_codes.CONFIGURATION
    group = int((tmp_path / "pid").read_text())
    eventually(lambda: nothing_runs_in(group))


def nothing_runs_in(group: int) -> None:
    """Zombies do not count: whose parent is gone, PID 1 reaps."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it ended meanwhile
            continue
        assert int(of_group) != group or state == "Z"


def test_a_script_that_asks_for_input_gets_none(tmp_path: Path) -> None:
    assert on(tmp_path, "read answer; export NCCL_NET=gIB")[0]["NCCL_NET"] == "gIB"
