"""The order of the data: a keyed permutation per epoch, computed and never stored.

A cursor into it is one number, so a resume at any world size goes on with the next sample, and
a data set of 10⁹ samples needs no table of 8 GB.
"""

import hashlib
from functools import lru_cache

ROUNDS = 4
"""Four rounds make a Feistel network a strong permutation (Luby and Rackoff, 1988)."""

_64_BITS = (1 << 64) - 1


def sample_id(position: int, length: int, seed: int, *, used: int | None = None) -> int:
    """The sample at a global `position`, which counts on through all epochs; 0 ≤ id < `length`.

    `used` samples are taken of each epoch, others of the next; None: all.
    """
    epoch, offset = divmod(position, used or length)
    return permute(offset, length, _round_keys(seed, epoch))


def permute(value: int, length: int, keys: tuple[int, ...]) -> int:
    """A permutation of 0 … length - 1, by a Feistel network over the next power of four.

    What falls outside is sent through again (cycle walking): fewer than four rounds on average.
    """
    half_bits = max(1, ((length - 1).bit_length() + 1) // 2)
    while True:
        value = _feistel(value, half_bits, keys)
        if value < length:
            return value


def _feistel(value: int, half_bits: int, keys: tuple[int, ...]) -> int:
    mask = (1 << half_bits) - 1
    left, right = value >> half_bits, value & mask
    for key in keys:
        left, right = right, left ^ (_mix(right ^ key) & mask)
    return left << half_bits | right


def _mix(value: int) -> int:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _64_BITS
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _64_BITS
    return value ^ (value >> 31)


@lru_cache(maxsize=2)  # a step reads at most from two neighbouring epochs in turn
def _round_keys(seed: int, epoch: int) -> tuple[int, ...]:
    digest = hashlib.blake2b(f"{seed}:{epoch}".encode(), digest_size=8 * ROUNDS).digest()
    return tuple(int.from_bytes(digest[start : start + 8]) for start in range(0, len(digest), 8))
