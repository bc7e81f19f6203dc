"""Rows say what their sources say: no file without a machine, no number without a source."""

import pytest

from kopeck.api.errors import ConfigError
from kopeck.topology.instance_type import InstanceType
from kopeck.topology.library import INSTANCE_TYPES, find_instance_type, known_instance_type

_each_type = pytest.mark.parametrize("row", INSTANCE_TYPES, ids=lambda row: row.names[0])


@_each_type
def test_every_row_has_public_sources_and_a_reason(row: InstanceType) -> None:
    assert row.why
    assert row.sources
    assert all(source.startswith("https://") for source in row.sources)


@_each_type
def test_a_file_is_needed_only_where_the_machine_is_known(row: InstanceType) -> None:
    assert row.machine or row.verdict != "needed"


@_each_type
def test_a_machine_has_the_devices_that_its_row_counts(row: InstanceType) -> None:
    if row.machine:
        kinds = [each.kind for each in row.machine.devices()]
        assert (kinds.count("gpu"), kinds.count("nic")) == (row.gpus, row.nics)


def test_no_name_is_in_two_rows() -> None:
    names = [name.lower() for each in INSTANCE_TYPES for name in each.names]
    assert len(names) == len(set(names))


def test_names_are_found_however_a_label_capitalises_them() -> None:
    assert find_instance_type("standard_nd96asr_V4") is find_instance_type("Standard_ND96asr_v4")


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    p5 = known_instance_type("p5.48xlarge")
    assert p5.unknown == ("NUMA nodes", "PCIe switches", "link speeds", "bus ids")
    assert known_instance_type("Standard_ND96asr_v4").unknown == ()


def test_gpus_of_another_maker_are_refused() -> None:
    assert known_instance_type("Standard_ND96isr_MI300X_v5").verdict == "refused"


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    assert find_instance_type("m5.large") is None
    with pytest.raises(ConfigError, match=r"^m5\.large: is no instance type .*p5\.48xlarge"):
        known_instance_type("m5.large")
