import json
from pathlib import Path

from kopeck_trainer.ranks import RankEnd
from kopeck_trainer.termination import termination_message, write_termination_message


def test_figures_are_put_together_from_all_local_ranks() -> None:
    failure = RankEnd(rank=3, local_rank=1, exit_code=137, ended_at=0.0, signal_name="SIGKILL")
    reports = [
        {
            "step": 12,
            "job_samples": 384,
            "steady_step_seconds": 0.5,
            "peak_device_bytes": 2**30,
            "peak_resident_bytes": 3,
            "samples_per_second": 20.0,
            "mfu": 0.5,
            "graph_breaks": 0,
            "time": 1_800_000_000.5,
            "phase_seconds": {"startup": 4.0, "compute": 6.0, "idle": 0.0},
        },
        {
            "step": 11,
            "job_samples": 352,
            "steady_step_seconds": 0.25,
            "peak_device_bytes": 2**31,
            "peak_resident_bytes": 2,
            "samples_per_second": 19.0,
            "mfu": 0.25,
            "graph_breaks": 1,
            "time": 1_800_000_001.5,
            "phase_seconds": {"startup": 5.0, "compute": 6.0001},
            "compile_decision": {"mode": "off", "why": "it is cheapest", "trials": []},
        },
        {},
    ]
    assert termination_message("failed", "rank 3 was ended by SIGKILL", failure, reports) == {
        "v": 1,
        "exitClass": "failed",
        "reportedAt": 1_800_000_001.5,
        "phaseSeconds": {"startup": 4.5, "compute": 6.0},
        "step": 12,
        "samples": 384,
        "stepSeconds": 0.5,
        "peakDeviceBytes": 2**31,
        "peakResidentBytes": 3,
        "samplesPerSecond": 39.0,
        "mfu": 0.375,
        "compileDecision": "it is cheapest",
        "graphBreaks": 1,
        "firstFailure": {"rank": 3, "exitCode": 137, "signal": "SIGKILL"},
        "message": "rank 3 was ended by SIGKILL",
    }


def test_a_long_message_loses_its_end_and_nothing_else(tmp_path: Path) -> None:
    content = termination_message("failed", 'é"' * 5000, None, [{"step": 7}])
    write_termination_message(tmp_path / "log", content)
    written = (tmp_path / "log").read_bytes()
    assert len(written) <= 4096
    assert json.loads(written)["step"] == 7
    assert json.loads(written)["message"].endswith("…")
