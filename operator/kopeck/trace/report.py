"""What is measured of the ranks of a job together."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kopeck.api.errors import ConfigError
from kopeck.trace.bandwidth import Bandwidth, bandwidths
from kopeck.trace.clocks import Clock, clocks_of, without_strangers
from kopeck.trace.matching import Match, matches_of
from kopeck.trace.summary import RankSummary
from kopeck.trace.waiting import Split, splits_of, stragglers


@dataclass(frozen=True)
class RankReport:
    """One rank among the others."""

    summary: RankSummary
    split: Split | None
    """None where nothing communicates."""
    clock: Clock | None
    """None where no collective was matched with the reference's."""
    score: float | None
    """The shortest time of a rank without its waiting, by this one's: 1 for the fastest.

    None where no collective was matched, so that waiting is not known."""


@dataclass(frozen=True)
class Report:
    """A job, or as many of its ranks as there are traces."""

    ranks: tuple[RankReport, ...]
    """By rank; those that do not tell theirs come last."""
    matches: tuple[Match, ...]
    bandwidths: tuple[Bandwidth, ...]
    stragglers: tuple[int, ...]
    notes: tuple[str, ...]
    """In sentences, what was lost, guessed or left out."""


def report_of(summaries: Sequence[RankSummary], left_out: Sequence[str] = ()) -> Report:
    """`left_out` are sentences on files that are no traces.

    Raises ConfigError for traces that cannot be of one job.
    """
    _refuse_different_jobs(summaries)
    ordered = sorted(summaries, key=lambda each: (each.origin.rank is None, each.origin.rank or 0))
    by_rank = {
        each.origin.rank: each.collectives for each in ordered if each.origin.rank is not None
    }
    world_size = next((each.origin.world_size for each in ordered if each.origin.world_size), None)
    found = matches_of(by_rank, world_size)
    clocks = clocks_of(found)
    matches = without_strangers(found, clocks.strangers)
    splits = splits_of(by_rank, matches)
    spans = [each.breakdown.span_ns for each in ordered if each.breakdown]
    ranks = tuple(_rank_report(each, splits, clocks.by_rank) for each in ordered)
    return Report(
        ranks=_with_scores(ranks),
        matches=tuple(matches),
        bandwidths=tuple(bandwidths(matches, ordered[0].origin.gpu)),
        stragglers=tuple(stragglers(splits, int(median(spans)))) if spans else (),
        notes=(*left_out, *_notes(ordered), *_strangers_notes(clocks.strangers)),
    )


def _refuse_different_jobs(summaries: Sequence[RankSummary]) -> None:
    first = summaries[0].origin
    seen: dict[int, str] = {}
    for origin in (each.origin for each in summaries):
        if origin.world_size != first.world_size and origin.world_size and first.world_size:
            wrong = f"is of a job of {origin.world_size} ranks, {first.file} of {first.world_size}"
            raise ConfigError(origin.file, wrong, "name traces of one job")
        if origin.rank is None:
            continue
        if origin.rank in seen:
            wrong = f"is of rank {origin.rank}, as {seen[origin.rank]} is"
            raise ConfigError(origin.file, wrong, "name one trace of each rank of one job")
        seen[origin.rank] = origin.file


def _rank_report(
    summary: RankSummary, splits: dict[int, Split], clocks: dict[int, Clock]
) -> RankReport:
    rank = summary.origin.rank
    if rank is None or not summary.collectives:
        return RankReport(summary, None, None, None)
    return RankReport(summary, splits[rank], clocks.get(rank), None)


def _with_scores(ranks: tuple[RankReport, ...]) -> tuple[RankReport, ...]:
    own = [own_ns(each) if each.split and each.split.transfer_ns else None for each in ranks]
    best = min((each for each in own if each), default=0)
    return tuple(
        RankReport(each.summary, each.split, each.clock, best / its if its else None)
        for each, its in zip(ranks, own, strict=True)
    )


def own_ns(rank: RankReport) -> int | None:
    """A rank's time without that in which it waits for others; None without a GPU."""
    if rank.summary.breakdown is None:
        return None
    return rank.summary.breakdown.span_ns - (rank.split.waited_ns if rank.split else 0)


def _notes(summaries: Sequence[RankSummary]) -> list[str]:
    notes = []
    for each in summaries:
        notes += [f"{each.origin.file}: {lost}" for lost in each.lost]
        if each.breakdown is None:
            notes.append(f"{each.origin.file}: nothing ran on a GPU")
        if each.origin.rank is None:
            notes.append(f"{each.origin.file}: its rank is not told, nothing is matched with it")
        if each.launches and each.launches.before_launch:
            early = f"{each.launches.before_launch} of {each.launches.launched} events"
            wrong = "begin before their launch: the clocks of host and GPU disagree"
            notes.append(f"{each.origin.file}: {early} {wrong}")
    return notes


def _strangers_notes(strangers: dict[int, Clock]) -> list[str]:
    return [
        f"rank {rank}: its collectives end up to {clock.spread_seconds * 1e3:.0f} ms apart "
        "from the others', so they are of another run and are not split"
        for rank, clock in strangers.items()
    ]
