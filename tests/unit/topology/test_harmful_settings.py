"""Settings that are known to cost something, and those that are not."""

import pytest

from kopeck.topology.harmful_settings import Harm, SettingWarning, setting_warnings
from kopeck.topology.platform import Platform

EFA, RDMA = Platform.AWS_EFA, Platform.RDMA


def warned(
    platform: Platform | None = RDMA, vendor: dict[str, str] | None = None, **settings: str
) -> list[SettingWarning]:
    return setting_warnings(settings, platform, vendor or {})


@pytest.mark.parametrize(
    ("name", "value", "cost"),
    [
        ("NCCL_P2P_DISABLE", "1", "host memory"),
        ("NCCL_P2P_DISABLE", "0x1", "host memory"),
        ("NCCL_IB_DISABLE", "1", "TCP"),
        ("NCCL_SHM_DISABLE", "1", "network"),
        ("NCCL_ALGO", "Ring", "forces the algorithm"),
        ("NCCL_PROTO", "LL128", "forces the protocol"),
        ("NCCL_PROTO", "Simple", "forces the protocol"),
        ("NCCL_BUFFSIZE", "8388608", "memory"),
        ("NCCL_MIN_NCHANNELS", "32", "SM"),
        ("NCCL_MAX_NCHANNELS", "2", "bandwidth"),
        ("NCCL_MIN_CTAS", "32", "SM"),
        ("NCCL_MAX_CTAS", "2", "bandwidth"),
        ("NCCL_NVLS_ENABLE", "0", "NVSwitches"),
        ("NCCL_NVLS_ENABLE", "1", "forced"),
        ("NCCL_GRAPH_FILE", "/graph.xml", "another machine"),
        ("NCCL_GRAPH_FILE", "", "gives up"),
        ("NCCL_TOPO_FILE", "", "/var/run"),
        ("NCCL_IGNORE_CPU_AFFINITY", "1", "fails the job"),
        ("NCCL_IB_HCA", "mlx5_1", "mlx5_10 too; write =mlx5_1"),
        ("NCCL_IB_HCA", "mlx5_0:1,mlx5_1:1", "mlx5_10 too; write =mlx5_0:1,mlx5_1:1"),
        ("NCCL_IB_HCA", "^mlx5_2", "mlx5_20 too; write ^=mlx5_2"),
        ("NCCL_IB_HCA", "^", "every adapter"),
        ("FI_PROVIDER", "efa", "by itself"),
        ("FI_EFA_USE_DEVICE_RDMA", "1", "by itself"),
    ],
)
def test_what_it_costs_is_said(name: str, value: str, cost: str) -> None:
    (warning,) = warned(**{name: value})
    assert cost in warning.cost
    assert str(warning).startswith(f"{name}={value}: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_P2P_DISABLE", "0"),
        ("NCCL_P2P_DISABLE", ""),
        ("NCCL_IB_DISABLE", "no"),
        ("NCCL_ALGO", ""),
        ("NCCL_PROTO", ""),
        ("NCCL_NVLS_ENABLE", "2"),
        ("NCCL_NVLS_ENABLE", ""),
        ("NCCL_TOPO_FILE", "/topology.xml"),
        ("NCCL_IGNORE_CPU_AFFINITY", "0"),
        ("NCCL_IB_HCA", ""),
        ("NCCL_IB_HCA", "mlx5"),
        ("NCCL_IB_HCA", "=mlx5_1"),
        ("NCCL_IB_HCA", "^=mlx5_1,mlx5_2"),
        ("NCCL_IB_HCA", "mlx5_0"),
        ("NCCL_IB_HCA", "mlx5_ib"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_SOCKET_IFNAME", "=eth0"),
        ("NCCL_IB_PCI_RELAXED_ORDERING", "1"),
        ("PATH", "/bin"),
    ],
)
def test_what_costs_nothing_is_not_spoken_of(name: str, value: str) -> None:
    assert warned(**{name: value}) == []


@pytest.mark.parametrize("value", ["LL128", "LL,LL128,Simple", "^Simple", "^LL128", "ll , simple"])
@pytest.mark.parametrize("platform", [EFA, None])
def test_a_protocol_that_relies_on_order_can_corrupt_data_on_efa(
    value: str, platform: Platform | None
) -> None:
    (warning,) = warned(platform, NCCL_PROTO=value)
    assert warning.harm == Harm.DATA
    assert "corrupt data" in warning.cost


@pytest.mark.parametrize("value", ["simple", "Simple", "^LL,LL128", "^LL128,LL"])
def test_the_simple_protocol_is_right_on_efa(value: str) -> None:
    assert warned(EFA, NCCL_PROTO=value) == []


@pytest.mark.parametrize("value", ["", "/topology.xml", "/no/such/file"])
def test_any_topology_file_is_wrong_on_efa(value: str) -> None:
    (warning,) = warned(EFA, NCCL_TOPO_FILE=value)
    assert "OFI plugin" in warning.cost


def test_the_worst_comes_first() -> None:
    settings = {"FI_PROVIDER": "efa", "NCCL_P2P_DISABLE": "1", "NCCL_PROTO": "LL"}
    harms = [each.harm for each in warned(EFA, **settings)]
    assert harms == [Harm.DATA, Harm.COST, Harm.NEEDLESS]


def test_what_the_vendor_sets_is_not_judged_and_what_differs_from_it_is() -> None:
    vendor = {"NCCL_ALGO": "Tree", "NCCL_IGNORE_CPU_AFFINITY": "1"}
    assert warned(Platform.OCI, vendor, **vendor) == []
    (warning,) = warned(Platform.OCI, vendor, NCCL_ALGO="Ring", NCCL_IGNORE_CPU_AFFINITY="1")
    assert (warning.name, warning.value) == ("NCCL_ALGO", "Ring")


@pytest.mark.parametrize("platform", [Platform.GCP_TCPXO, Platform.GCP_GIB])
def test_tuning_is_left_to_the_vendors_script_on_gcp(platform: Platform) -> None:
    assert warned(platform, NCCL_PROTO="Simple,LL128", NCCL_BUFFSIZE="8388608") == []
    assert warned(platform, NCCL_P2P_DISABLE="1")


def test_a_graph_file_is_the_vendors_on_azure_nc() -> None:
    assert warned(Platform.AZURE_NC, NCCL_GRAPH_FILE="/opt/microsoft/ncv4/graph.xml") == []
