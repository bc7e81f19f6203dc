"""One rank's trace from its file, on one core or, if it is large and not packed, on several."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import chain

from kopeck.api.errors import ConfigError
from kopeck.trace.columns import Columns, joined
from kopeck.trace.decoding import PieceDecoder
from kopeck.trace.events import RankTrace
from kopeck.trace.files import Blocks, TraceFile, size_of
from kopeck.trace.framing import Head, first_cut, first_key, head_of, pieces
from kopeck.trace.losses import Loss, Losses
from kopeck.trace.origin import metadata_of, origin_of
from kopeck.trace.sharing import shared_out

WORTH_SPLITTING_BYTES = 32 * 2**20
"""Below, another process costs more time than it saves."""
_STRETCHES_PER_CORE = 12
_SEARCHED_FOR_A_CUT_BYTES = 16 * 2**20
_LARGEST_REUSED_BYTES = 16 * 2**20


def read_rank(file: TraceFile, *, everything: bool = False) -> RankTrace:
    """A trace, read on this core.

    `everything` keeps what only HTA looks at. Raises ConfigError for a file that is no trace.
    """
    _keep_freed_memory()
    source = Blocks(file)
    blocks = iter(source)
    head, first = _opening(file, blocks)
    decoder = PieceDecoder(first_key(first), everything=everything)
    _decode(decoder, chain([first], blocks), is_last=True)
    lost = ["its packed data is damaged"] if source.is_damaged else []
    return _trace(file, head, [decoder.columns], [*lost, *file.lost])


def read_rank_on_cores(
    file: TraceFile, pool: Executor, cores: int, *, least_bytes: int = WORTH_SPLITTING_BYTES
) -> RankTrace:
    """The same with the help of other processes.

    A file of fewer than `least_bytes`, or packed, is read on this core alone.
    """
    size = size_of(file)
    if size.bytes < least_bytes or size.is_packed:
        return read_rank(file)
    head, first = _opening(file, iter(Blocks(file)))
    key = first_key(first)
    stretches = _stretches(file, key, head.events_at, size.bytes, cores * _STRETCHES_PER_CORE)
    decode = partial(decode_stretch, file, key)
    decoded = shared_out(pool, cores - 1, decode, stretches, lambda: None)
    guessed_wrong = any(each.losses.counts[Loss.NOT_READ] for each in decoded)
    if guessed_wrong or any(each.tail is not None for each in decoded[:-1]):
        return read_rank(file)
    return _trace(file, head, decoded, [])


@dataclass(frozen=True)
class Stretch:
    """Whole events of a file from one cut to another; the last one to the end of the text."""

    start: int
    stop: int
    is_last: bool


def decode_stretch(file: TraceFile, key: bytes, stretch: Stretch) -> Columns:
    """The events of a stretch; for another process to run."""
    _keep_freed_memory()
    decoder = PieceDecoder(key)
    _decode(decoder, iter(Blocks(file, stretch.start, stretch.stop)), is_last=stretch.is_last)
    decoder.columns.join_pieces()
    return decoder.columns


def _decode(decoder: PieceDecoder, blocks: Iterator[bytes], *, is_last: bool) -> None:
    """Events from one cut to another, or to the end of the text."""
    last: bytes | None = None
    for piece in pieces(blocks, decoder.key):
        if last is not None:
            decoder.add(last)
        last = piece
    if is_last:
        decoder.end(last or b"")
    elif last:
        decoder.add(b"[" + last + b"]")


def _keep_freed_memory() -> None:
    """Have glibc reuse the memory of blocks and pieces, instead of giving it back each time.

    It keeps what is smaller than the largest that was ever given back, up to 32 MB (mallopt(3),
    M_MMAP_THRESHOLD). Without, the kernel takes a seventh of the time of reading, for fresh pages.
    """
    bytes(_LARGEST_REUSED_BYTES)


def _opening(file: TraceFile, blocks: Iterator[bytes]) -> tuple[Head, bytes]:
    """The head of the text, and what of the events was read with it."""
    text = b""
    for block in blocks:
        text += block
        if (head := head_of(text)) is not None:
            return head, text[head.events_at :]
    wrong = "is empty" if not text.strip() else "has no list traceEvents"
    raise ConfigError(file.name, f"{wrong}, so it is no trace", "name what torch.profiler exported")


def _stretches(file: TraceFile, key: bytes, begin: int, size: int, parts: int) -> list[Stretch]:
    """About equal parts of a file."""
    starts, stops = [begin], []
    for part in range(1, parts):
        about = begin + (size - begin) * part // parts
        text = b""
        for block in Blocks(file, about, min(size, about + _SEARCHED_FOR_A_CUT_BYTES)):
            text += block
            if (cut := first_cut(text, key)) is not None:
                stops.append(about + cut.end)
                starts.append(about + cut.begin)
                break
    stops.append(size)
    last = len(starts) - 1
    bounds = enumerate(zip(starts, stops, strict=True))
    return [Stretch(start, stop, at == last) for at, (start, stop) in bounds if start < stop]


def _trace(file: TraceFile, head: Head, stretches: Sequence[Columns], lost: list[str]) -> RankTrace:
    metadata = metadata_of(head.metadata, stretches[-1].tail or b"")
    if metadata is None:
        lost.append("its metadata cannot be read")
    origin, guesses = origin_of(file.name, metadata or {})
    gpus = set().union(*(each.gpus for each in stretches))
    if len(gpus) > 1:
        lost.append(f"its events are of {len(gpus)} GPUs, whose times are taken together")
    losses = Losses()
    for each in stretches:
        losses.add(each.losses)
    return RankTrace(
        origin=origin,
        events=joined(stretches),
        lost=(*losses.sentences(), *lost, *guesses),
        has_float_times=any(each.has_float_times for each in stretches),
        has_first_event=stretches[0].has_first_event,
    )
