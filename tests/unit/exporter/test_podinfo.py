"""The hourly rate from the annotations file, and what becomes of it when that is wrong."""

from pathlib import Path

import pytest

from kopeck_exporter.podinfo import InvalidRateError, hourly_rate_dollars
from tests.unit.exporter.reporting import Sidecar

RATE = "kopeck_hourly_rate_dollars"


def annotations(folder: Path, rate: str) -> Path:
    path = folder / "annotations"
    path.write_text(f'a="1"\nkopeck.dev/hourly-rate-dollars="{rate}"\nz="two\\nlines"\n')
    return path


@pytest.mark.parametrize(
    ("rate", "dollars"), [("3.2", 3.2), ("98", 98.0), ("0.00", 0.0), ("1E+2", 100.0)]
)
def test_a_price_is_read_among_other_annotations(tmp_path: Path, rate: str, dollars: float) -> None:
    assert hourly_rate_dollars(annotations(tmp_path, rate)) == dollars


def test_no_file_no_annotation_and_an_empty_one_are_an_unknown_price(tmp_path: Path) -> None:
    path = tmp_path / "annotations"
    assert hourly_rate_dollars(path) is None
    path.write_text('kopeck.dev/hourly-rate-dollars-of-old="9"\n')
    assert hourly_rate_dollars(path) is None
    assert hourly_rate_dollars(annotations(tmp_path, "")) is None


@pytest.mark.parametrize(
    "rate", ["x", "-1", "nan", "inf", "1e999", "3,2", "1_0", " 3", "3 USD", '3\\"', "٣", "0x10"]
)
def test_a_price_that_is_none_is_refused(tmp_path: Path, rate: str) -> None:
    with pytest.raises(InvalidRateError, match=r"write 3\.2"):
        hourly_rate_dollars(annotations(tmp_path, rate))


def test_a_price_that_changes_shows_at_the_next_scrape(sidecar: Sidecar) -> None:
    folder = sidecar.podinfo.parent
    for version, rate in [("..1", "3.2"), ("..2", "4.8")]:
        (folder / version).mkdir()
        swapped = folder / "swapped"
        swapped.symlink_to(annotations(folder / version, rate))
        swapped.rename(sidecar.podinfo)  # as the kubelet does
        assert sidecar.value(RATE) == float(rate)


def test_a_wrong_price_is_absent_and_counted(sidecar: Sidecar) -> None:
    annotations(sidecar.podinfo.parent, "free")
    samples = sidecar.samples()
    assert (RATE, frozenset()) not in samples
    labels = frozenset({("source", "annotations"), ("reason", "invalid_rate")})
    assert samples["kopeck_exporter_errors_total", labels] == 1


@pytest.mark.parametrize("fault", ["folder", "not text"])
def test_a_file_that_cannot_be_read_is_absent_and_counted(sidecar: Sidecar, fault: str) -> None:
    if fault == "folder":
        sidecar.podinfo.mkdir()
    else:
        sidecar.podinfo.write_bytes(b"\xff\xfe\x00")
    samples = sidecar.samples()
    assert (RATE, frozenset()) not in samples
    labels = frozenset({("source", "annotations"), ("reason", "unreadable")})
    assert samples["kopeck_exporter_errors_total", labels] == 1
