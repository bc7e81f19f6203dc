"""The sidecar of a training pod: takes the ranks' reports, serves them to Prometheus and operator.

Nothing of kopeck or kopeck_trainer is imported here; both may read `kopeck_exporter.names`.
"""
