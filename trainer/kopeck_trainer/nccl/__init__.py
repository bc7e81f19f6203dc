"""What the launcher sees to before NCCL starts: only what can be known in the pod alone.

What belongs here: checks and choices by what this pod has, its GPUs, adapters, interfaces and
limits. What follows from the node's platform is the operator's. No torch, no NCCL: it reads files.
"""
