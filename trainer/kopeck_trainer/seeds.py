"""Random seeds that depend on what they are for, never on who asks or in which order."""

import hashlib


def derived_seed(seed: int, *purpose: str) -> int:
    """A 63-bit seed for one purpose of the job's `seed`, such as a parameter's name."""
    text = "\0".join((str(seed), *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
