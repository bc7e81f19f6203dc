"""Which interface NCCL and gloo meet their peers on."""

from ipaddress import ip_address
from pathlib import Path

import pytest

from kopeck_trainer.nccl.interfaces import Address, interface_addresses, interface_to_name
from tests.unit.trainer.nccl.machine import TWO_INTERFACES, a_file, environment_on, with_vendor


@pytest.mark.parametrize(
    ("address", "interface"),
    [("10.0.0.5", "eth0"), ("fd00:0::5", "eth0"), ("192.168.0.5", "ib0"), ("10.0.0.6", None)],
)
def test_it_is_that_of_the_pods_address(address: str, interface: str | None) -> None:
    assert interface_to_name(address, TWO_INTERFACES) == interface


@pytest.mark.parametrize("addresses", [{}, {"eth0": {ip_address("10.0.0.5")}}])
def test_where_there_is_no_choice_nothing_is_named(addresses: dict[str, set[Address]]) -> None:
    assert interface_to_name("10.0.0.5", addresses) is None


def test_an_unknown_address_names_nothing() -> None:
    assert interface_to_name("", TWO_INTERFACES) is None


def test_this_machines_own_addresses_are_read_without_loopback() -> None:
    found = interface_addresses()
    assert "lo" not in found
    assert not any(each.is_loopback for addresses in found.values() for each in addresses)
    assert all(found.values())


def test_link_local_addresses_are_nobodys(tmp_path: Path) -> None:
    table = a_file(
        tmp_path / "if_inet6",
        "fe800000000000000000000000000001 02 40 20 80    net7\n"
        "fd000000000000000000000000000005 03 40 00 80    net8\n"
        "00000000000000000000000000000001 01 80 10 80      lo\n",
    )
    found = interface_addresses(table)
    assert "net7" not in found
    assert found["net8"] == {ip_address("fd00::5")}


def test_a_kernel_without_ipv6_has_ipv4_addresses_only(tmp_path: Path) -> None:
    found = interface_addresses(tmp_path / "if_inet6")
    assert all(each.version == 4 for addresses in found.values() for each in addresses)


POD_IP = {"KOPECK_POD_IP": "10.0.0.5"}


def test_nccl_is_given_the_exact_name_and_gloo_the_bare_one(tmp_path: Path) -> None:
    found, said = environment_on(tmp_path, **POD_IP)
    assert found == POD_IP | {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}
    assert len(said) == 2


def test_what_the_user_or_a_file_of_nccl_names_stays(tmp_path: Path) -> None:
    pod = POD_IP | {"GLOO_SOCKET_IFNAME": "mine"}
    a_file(tmp_path / "etc/nccl.conf", "# a comment\nNCCL_SOCKET_IFNAME=eth9\n")
    assert environment_on(tmp_path, **pod) == (pod, [])


def test_a_file_of_nccl_tells_gloo_nothing(tmp_path: Path) -> None:
    a_file(tmp_path / "etc/nccl.conf", "GLOO_SOCKET_IFNAME=eth9\n")
    assert environment_on(tmp_path, **POD_IP)[0]["GLOO_SOCKET_IFNAME"] == "eth0"
    pod = POD_IP | {"GLOO_SOCKET_IFNAME": "mine"}
    assert environment_on(tmp_path, **pod)[0]["GLOO_SOCKET_IFNAME"] == "mine"


@pytest.mark.parametrize("vendor", ["Amazon EC2", "Google"])
def test_where_the_vendors_plugin_chooses_it_is_left_to_it(tmp_path: Path, vendor: str) -> None:
    assert environment_on(with_vendor(tmp_path, vendor), **POD_IP) == (POD_IP, [])
    with_vendor(tmp_path, "Microsoft Corporation")
    assert environment_on(tmp_path, **POD_IP)[1]


def test_one_worker_meets_nobody(tmp_path: Path) -> None:
    assert environment_on(tmp_path, workers=1, **POD_IP) == (POD_IP, [])
