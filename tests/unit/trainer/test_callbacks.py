"""The examples with a Trainer of someone else, in processes as users start them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopeck_trainer.run_directory import read_json, report_file

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("library", "example", "checkpoint_step"),
    [
        ("transformers", "hugging_face_trainer.py", 14),
        ("lightning", "lightning_trainer.py", 10),
    ],
)
def test_an_example_reports_samples_and_phases(
    tmp_path: Path, library: str, example: str, checkpoint_step: int
) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    subprocess.run(
        [sys.executable, str(EXAMPLES / example)],
        env=os.environ | {"KOPECK_RUN_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        cwd=tmp_path,
        timeout=300,
    )
    report = read_json(report_file(tmp_path, 0))
    # Two epochs of 100 samples in batches of 8, two batches to a step: the last one is smaller.
    assert (report["samples"], report["step"]) == (200, 14)
    assert report["checkpoint_step"] == checkpoint_step
    assert report["loss"] > 0
    phases = {name for name, seconds in report["phase_seconds"].items() if seconds > 0}
    assert phases == {"startup", "compute", "data_wait", "checkpoint", "idle"}
