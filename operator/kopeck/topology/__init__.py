"""What NCCL needs of a node, and what pods lose of what the host knows.

What belongs here: the platform of a node, the environment and resources of its pods, topology
files. Pure: nothing here asks a cluster, files are read by whoever calls.
"""
