"""What a node's labels say of its price."""

import pytest

from kopeck.pricing.price import NodeKey, node_key

KARPENTER = "karpenter.sh/capacity-type"
RESERVATION = "karpenter.k8s.aws/capacity-reservation-type"
EKS = "eks.amazonaws.com/capacityType"
GKE = "cloud.google.com/gke-provisioning"
GKE_SPOT = "cloud.google.com/gke-spot"
GKE_PREEMPTIBLE = "cloud.google.com/gke-preemptible"
AKS = "kubernetes.azure.com/scalesetpriority"


def test_the_key_is_read_from_the_well_known_labels() -> None:
    labels = {
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a",
        KARPENTER: "spot",
    }
    assert node_key(labels) == NodeKey("p5.48xlarge", "us-east-1", "us-east-1a", "spot")


def test_what_a_node_does_not_say_is_unknown() -> None:
    assert node_key({}) == NodeKey(None, None, None, "on-demand")


@pytest.mark.parametrize(
    ("label", "value", "capacity_type"),
    [
        (KARPENTER, "on-demand", "on-demand"),
        (KARPENTER, "spot", "spot"),
        (KARPENTER, "reserved", "reserved"),
        (RESERVATION, "capacity-block", "block"),
        (EKS, "ON_DEMAND", "on-demand"),
        (EKS, "SPOT", "spot"),
        (EKS, "CAPACITY_BLOCK", "block"),
        (GKE, "standard", "on-demand"),
        (GKE, "spot", "spot"),
        (GKE_SPOT, "true", "spot"),
        (GKE_PREEMPTIBLE, "true", "spot"),
        (AKS, "regular", "on-demand"),
        (AKS, "spot", "spot"),
    ],
)
def test_each_cloud_says_capacity_in_its_own_words(
    label: str, value: str, capacity_type: str
) -> None:
    assert node_key({label: value}).capacity_type == capacity_type


@pytest.mark.parametrize("label", [KARPENTER, RESERVATION, EKS, GKE, GKE_SPOT, AKS])
@pytest.mark.parametrize("value", ["", "new-word", "OnDemand", "flex-start"])
def test_a_word_that_is_not_known_is_never_on_demand(label: str, value: str) -> None:
    assert node_key({label: value}).capacity_type == "unknown"


def test_a_capacity_block_is_no_plain_reservation() -> None:
    labels = {KARPENTER: "reserved", RESERVATION: "capacity-block"}
    assert node_key(labels).capacity_type == "block"


def test_a_plain_reservation_is_reserved() -> None:
    labels = {KARPENTER: "reserved", RESERVATION: "default"}
    assert node_key(labels).capacity_type == "reserved"


@pytest.mark.parametrize("label", [GKE_SPOT, GKE_PREEMPTIBLE])
@pytest.mark.parametrize("provisioning", ["standard", "preemptible"])
def test_a_spot_node_is_spot_whatever_its_provisioning_is_called(
    label: str, provisioning: str
) -> None:
    assert node_key({GKE: provisioning, label: "true"}).capacity_type == "spot"


def test_a_flexible_start_is_not_on_demand() -> None:
    assert node_key({GKE: "flex-start"}).capacity_type != "on-demand"
