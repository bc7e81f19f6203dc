"""A TrainingJob on this machine, without a cluster: the same launcher, trainer and exporter.

What belongs here: what stands in for pods. Workers become process groups that meet on 127.0.0.1.
"""
