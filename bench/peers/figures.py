"""Figures of the comparison: spreads over rounds, ratios within a round, and how late requests arrived. `python3 -m doctest` runs its
examples."""

import math
import statistics

# The start of a run that is left out (connections are opened and caches filled), a gap this much shorter than the scheduled one is a
# burst's, and the window in which the largest burst is looked for.
WARM_UP_NS = 1_000_000_000
SHORT_GAP = 0.1
BURST_NS = 1_000_000


def show(values, decimals):
    """Median, with least and most where they differ.

    >>> show([2.0, 1.0, 9.0], 1), show([2.0], 1), show([4.0, 1.0], 1), show([None], 1)
    ('2.0 (1.0-9.0)', '2.0', '2.5 (1.0-4.0)', '-')
    """
    values = finite(values)
    if not values:
        return "-"
    median, least, most = statistics.median(values), min(values), max(values)
    return f"{median:.{decimals}f} ({least:.{decimals}f}-{most:.{decimals}f})" if least < most else f"{median:.{decimals}f}"


def finite(values):
    return [value for value in values if value is not None and math.isfinite(value)]


def paired(ones, others):
    """Ratios of what has the same round, so that a slow minute of the machine is on both sides.

    >>> paired({1: 2.0, 2: 20.0, 3: 7.0}, {1: 1.0, 2: 10.0})
    [2.0, 2.0]
    """
    rounds = [number for number in ones if ones[number] is not None and others.get(number)]
    return [ones[number] / others[number] for number in rounds]


def rank(ordered, quantile):
    """The value at this rank (nearest rank) of ordered values."""
    return ordered[max(1, math.ceil(quantile * len(ordered))) - 1]


def arrivals(stamps, rate, warm_up_ns=WARM_UP_NS):
    """Fits the schedule of a constant rate and holds arrivals (ns, in any order) against it. The k-th after the warm-up belongs to
    t0 + k / rate; t0 is the latest start with which none is early. A tool that leaves out requests is late by those it left out.

    A metronome is never late, whatever its start; every 50th 3 ms late and the others 0.2 ms is found as that:
    >>> even = [k * 1_000_000 + 70_000 for k in range(5000)]
    >>> arrivals(even, 1000, 0) | {"gaps_variation": 0.0} == {"judged": 5000, "late_p50_ms": 0.0, "late_p99_ms": 0.0,
    ...     "late_max_ms": 0.0, "short_gaps_ratio": 0.0, "gaps_variation": 0.0, "burst_most": 1}
    True
    >>> late = [k * 10_000_000 + (k > 0) * (3_000_000 if k % 50 == 0 else 200_000) for k in range(10_000)]
    >>> [round(arrivals(late, 100, 0)[key], 3) for key in ("late_p50_ms", "late_p99_ms", "late_max_ms")]
    [0.2, 3.0, 3.0]

    Ten at once every 10 ms are bursts, and nine tenths of the requests make a tool late:
    >>> seen = arrivals([k // 10 * 10_000_000 for k in range(1000)], 1000, 0)
    >>> seen["burst_most"], seen["short_gaps_ratio"] > 0.89, seen["gaps_variation"] > 2.5, round(seen["late_max_ms"], 3)
    (10, True, True, 9.0)
    >>> 99 < arrivals([k * 1_111_111 for k in range(900)], 1000, 0)["late_max_ms"] < 101, arrivals([7], 1000, 0)
    (True, None)
    """
    stamps = sorted(stamps)
    judged = [stamp for stamp in stamps if stamp >= stamps[0] + warm_up_ns]
    if len(judged) < 2:
        return None
    interval = 1e9 / rate
    late = [stamp - judged[0] - k * interval for k, stamp in enumerate(judged)]
    earliest = min(late)
    late = sorted((value - earliest) / 1e6 for value in late)
    gaps = [after - before for before, after in zip(judged, judged[1:])]
    first = most = 0
    for last, stamp in enumerate(judged):
        while stamp - judged[first] >= BURST_NS:
            first += 1
        most = max(most, last - first + 1)
    return {
        "judged": len(judged),
        "late_p50_ms": rank(late, 0.5),
        "late_p99_ms": rank(late, 0.99),
        "late_max_ms": late[-1],
        "short_gaps_ratio": sum(gap < SHORT_GAP * interval for gap in gaps) / len(gaps),
        "gaps_variation": statistics.pstdev(gaps) / statistics.fmean(gaps),
        "burst_most": most,
    }


def frozen_quantile_ms(quantile, seconds, stop_seconds):
    """What arithmetic says of a constant rate for `seconds` and a server that stops for `stop_seconds`: the quantile of response time
    where it lies among the requests that the stop held up.

    >>> [round(frozen_quantile_ms(q, 20, 2)) for q in (0.99, 0.999, 1.0)], frozen_quantile_ms(0.5, 20, 2)
    ([1800, 1980, 2000], None)
    """
    after = seconds * (1 - quantile)
    return (stop_seconds - after) * 1e3 if after < stop_seconds else None
