"""One rank's trace from its file, on one core or, if it is large and not packed, on several."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import chain

from kopeck.api.errors import ConfigError
from kopeck.trace.columns import joined
from kopeck.trace.decoding import PieceDecoder
from kopeck.trace.events import RankTrace
from kopeck.trace.files import Blocks, TraceFile, is_packed
from kopeck.trace.framing import Head, first_cut, first_key, head_of, pieces
from kopeck.trace.losses import READ_NOT, Losses
from kopeck.trace.origin import metadata_of, origin_of

WORTH_SPLITTING_BYTES = 32 * 2**20
"""Below, another process costs more time than it saves."""
_STRETCHES_PER_CORE = 8
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


def read_rank_on_cores(
    file: TraceFile, pool: Executor, cores: int, *, least_bytes: int = WORTH_SPLITTING_BYTES
) -> RankTrace:
    """The same with the help of other processes; this one decodes, from the end, what is left.

    Stretches are many more than cores, so that one busy core delays by one of them at most. A file
    of fewer than `least_bytes`, or packed, is read on this core alone.
    """
    size = file.path.stat().st_size
    if size < least_bytes or is_packed(file):
        return read_rank(file)
    head, first = _opening(file, iter(Blocks(file)))
    key = first_key(first)
    stretches = _stretches(file, key, head.events_at, size, cores * _STRETCHES_PER_CORE)
    helped = [pool.submit(decode_stretch, file, each, key) for each in stretches]
    own = {
        at: decode_stretch(file, stretches[at], key)
        for at in reversed(range(len(stretches)))
        if helped[at].cancel()
    }
    decoders = [own[at] if at in own else each.result() for at, each in enumerate(helped)]
    guessed_wrong = any(each.columns.losses.counts[READ_NOT] for each in decoders)
    if guessed_wrong or any(each.tail is not None for each in decoders[:-1]):
        return read_rank(file)
    return _trace(file, head, decoders, [])


@dataclass(frozen=True)
class Stretch:
    """Whole events of a file from one cut to another; the last one to the end of the text."""

    start: int
    stop: int
    is_last: bool


def decode_stretch(file: TraceFile, stretch: Stretch, key: bytes) -> PieceDecoder:
    """The events of a stretch; for another process to run."""
    decoder = PieceDecoder(key)
    blocks = iter(Blocks(file, stretch.start, stretch.stop))
    if stretch.is_last:
        _decode(decoder, blocks)
        return decoder
    for piece in pieces(blocks, key):
        decoder.add(piece)
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
