class ClusterError(Exception):
    """Why there is no cluster, in one sentence that says what to do about it."""


class MissingError(ClusterError):
    """What a cluster needs is not here and cannot be had: tests that need it are skipped.

    Any other failure to start is a failure of the tests.
    """
