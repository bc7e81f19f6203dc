class ClusterError(Exception):
    """Why there is no cluster, in one sentence that says what to do about it."""
