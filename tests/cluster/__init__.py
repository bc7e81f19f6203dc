"""The whole of Kubernetes on one machine, for tests and for trying kopeck out.

Here belongs what starts, reaches and ends a cluster. What a test does with it does not.
"""

from tests.cluster.cluster import LocalCluster
from tests.cluster.errors import ClusterError, MissingError
from tests.cluster.existing import ExistingCluster, existing_cluster

__all__ = ["ClusterError", "ExistingCluster", "LocalCluster", "MissingError", "existing_cluster"]
