"""One rank's trace from its file, on one core or, if it is large and not packed, on several."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from itertools import chain

from kopeck.api.errors import ConfigError
from kopeck.trace.columns import joined
from kopeck.trace.decoding import PieceDecoder
from kopeck.trace.events import RankTrace
from kopeck.trace.files import Blocks, TraceFile, is_packed
from kopeck.trace.framing import Head, first_cut, first_key, head_of, pieces
from kopeck.trace.losses import READ_NOT, Losses
from kopeck.trace.origin import metadata_of, origin_of

_WORTH_SPLITTING_BYTES = 32 * 2**20
"""Below, another process costs more time than it saves."""
_SEARCHED_FOR_A_CUT_BYTES = 16 * 2**20


def read_rank(file: TraceFile, *, everything: bool = False) -> RankTrace:
    """A trace, read on this core.

    `everything` keeps what only HTA looks at. Raises ConfigError for a file that is no trace.
    """
    source = Blocks(file)
    blocks = iter(source)
    head, first = _opening(file, blocks)
    decoder = PieceDecoder(first_key(first), everything=everything)
    _decode(decoder, chain([first], blocks))
    lost = ["its packed data is damaged"] if source.is_damaged else []
    if file.is_last_before_damage:
        lost.append("its archive is damaged, what followed is lost")
    return _trace(file, head, [decoder], lost)


def read_rank_on_cores(file: TraceFile, pool: Executor, cores: int) -> RankTrace:
    """The same with the help of other processes; this one decodes a part itself."""
    size = file.path.stat().st_size
    if size < _WORTH_SPLITTING_BYTES or is_packed(file):
        return read_rank(file)
    head, first = _opening(file, iter(Blocks(file)))
    key = first_key(first)
    bounds = _bounds(file, key, head.events_at, size, cores)
    others = [pool.submit(decode_stretch, file, *each, key) for each in bounds[1:-1]]
    others.append(pool.submit(_decode_last, file, *bounds[-1], key))
    decoders = [decode_stretch(file, *bounds[0], key), *(other.result() for other in others)]
    guessed_wrong = any(each.columns.losses.counts[READ_NOT] for each in decoders)
    if guessed_wrong or any(each.tail is not None for each in decoders[:-1]):
        return read_rank(file)
    return _trace(file, head, decoders, [])


def decode_stretch(file: TraceFile, start: int, stop: int, key: bytes) -> PieceDecoder:
    """The events between two cuts of a file."""
    decoder = PieceDecoder(key)
    for piece in pieces(iter(Blocks(file, start, stop)), key):
        decoder.add(piece)
    return decoder


def _decode_last(file: TraceFile, start: int, stop: int, key: bytes) -> PieceDecoder:
    decoder = PieceDecoder(key)
    _decode(decoder, iter(Blocks(file, start, stop)))
    return decoder


def _decode(decoder: PieceDecoder, blocks: Iterator[bytes]) -> None:
    """What follows the first bracket, to the end of the text."""
    last: bytes | None = None
    for piece in pieces(blocks, decoder.key):
        if last is not None:
            decoder.add(last)
        last = piece
    decoder.end(last or b"")


def _opening(file: TraceFile, blocks: Iterator[bytes]) -> tuple[Head, bytes]:
    """The head of the text, and what of the events was read with it."""
    text = b""
    for block in blocks:
        text += block
        if (head := head_of(text)) is not None:
            return head, text[head.events_at :]
    wrong = "is empty" if not text.strip() else "has no list traceEvents"
    raise ConfigError(file.name, f"{wrong}, so it is no trace", "name what torch.profiler exported")


def _bounds(
    file: TraceFile, key: bytes, begin: int, size: int, parts: int
) -> list[tuple[int, int]]:
    """Where about equal stretches of whole events start and stop."""
    starts = [begin]
    stops = []
    for part in range(1, parts):
        about = begin + (size - begin) * part // parts
        text = b"".join(Blocks(file, about, min(size, about + _SEARCHED_FOR_A_CUT_BYTES)))
        if (cut := first_cut(text, key)) is not None and about > starts[-1]:
            stops.append(about + cut.end)
            starts.append(about + cut.begin)
    return list(zip(starts, [*stops, size], strict=True))


def _trace(
    file: TraceFile, head: Head, decoders: Sequence[PieceDecoder], lost: list[str]
) -> RankTrace:
    metadata = metadata_of(head.metadata, decoders[-1].tail or b"")
    if metadata is None:
        lost.append("its metadata cannot be read")
    origin, guesses = origin_of(file.name, metadata or {})
    gpus = set().union(*(decoder.columns.gpus for decoder in decoders))
    if len(gpus) > 1:
        lost.append(f"its events are of {len(gpus)} GPUs, whose times are taken together")
    losses = Losses()
    for decoder in decoders:
        losses.add(decoder.columns.losses)
    return RankTrace(
        origin=origin,
        events=joined([decoder.columns for decoder in decoders]),
        lost=(*losses.sentences(), *lost, *guesses),
        has_float_times=any(decoder.columns.has_float_times for decoder in decoders),
        has_first_event=decoders[0].columns.has_first_event,
    )
