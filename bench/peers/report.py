"""The report of a comparison: marks that the load engine is to reach, a table for each scenario, and the versions of the tools."""

from figures import finite, frozen_quantile_ms, paired, show

import statistics

# A Poisson process, which nobody calls even, has 0.095 of its gaps below a tenth of the mean.
SHORT_GAPS_MOST = 0.05
# From this length on (s) a run tells whether memory is flat.
SOAK_SECONDS = 600
# Difference of a tool's count from the server's that is said.
UNSAID_MOST = 0.02


def cpu_us(run):
    completed = run["reported"]["completed"]
    return 1e6 * (run["user_seconds"] + run["system_seconds"]) / completed if completed else None


def server_cpu_us(run):
    completed = run["reported"]["completed"]
    return 1e6 * run["server_cpu_seconds"] / completed if completed else None


def megabytes(key):
    return lambda run: run[key] / 1e6 if run.get(key) else None


def says(key):
    return lambda run: run["reported"].get(key)


def arrival(key, factor=1):
    return lambda run: run["arrivals"][key] * factor if run.get("arrivals") else None


def connected(run):
    return (run.get("seen") or {}).get("connected_seconds")


def grown(run):
    return run["resident_last_bytes"] / run["resident_10s_bytes"] if run.get("resident_10s_bytes") else None


# A column is its heading, its figure of a run, and its decimals.
CPU = ("CPU us a request", cpu_us, 2)
SERVER_CPU = ("server's CPU us", server_cpu_us, 1)
MEMORY = ("memory MB", megabytes("resident_most_bytes"), 1)
ANSWERS = ("answers/s", lambda run: run["answers_per_second"], 0)
COUNT = ("answers", says("completed"), 0)
TOOK = ("took s", lambda run: run["wall_seconds"], 1)
ERRORS = ("errors", lambda run: run["reported"].get("errors", 0), 0)
P50, P99, MAX = ("says p50 ms", says("p50_ms"), 2), ("says p99 ms", says("p99_ms"), 2), ("says max ms", says("max_ms"), 1)
LATE_P99 = ("late p99 ms", arrival("late_p99_ms"), 3)
CLOSED = [ANSWERS, TOOK, P50, P99, MAX, SERVER_CPU, MEMORY, ERRORS]
COLUMNS = {
    "open": [("late p50 ms", arrival("late_p50_ms"), 3), LATE_P99, ("late max ms", arrival("late_max_ms"), 1),
             ("own lag p99 ms", says("send_lag_p99_ms"), 3), ("short gaps %", arrival("short_gaps_ratio", 100), 1),
             ("variation of gaps", arrival("gaps_variation"), 2), ("most in 1 ms", arrival("burst_most"), 0), ANSWERS, TOOK, P50, P99,
             SERVER_CPU, MEMORY, ERRORS],
    "freeze": [P50, P99, ("says p99.9 ms", says("p999_ms"), 2), MAX, COUNT, ERRORS, MEMORY],
    "idle": [("connected s", connected, 3), ("memory MB at 10 s", megabytes("resident_10s_bytes"), 1),
             ("at the end", megabytes("resident_last_bytes"), 1), ("at most", megabytes("resident_most_bytes"), 1), COUNT, LATE_P99, CPU, P99,
             ERRORS],
}
COMPARED = {"freeze": None, "idle": None, "cores": ANSWERS}


class Rounds:
    """The last attempts that did not fail, by scenario, entrant and round."""

    def __init__(self, results):
        self.runs = {}
        for run in results["runs"]:
            if "failed" not in run:
                self.runs.setdefault((run["scenario"], run["entrant"]), {})[run["round"]] = run

    def entrants(self, scenario):
        return [entrant for name, entrant in self.runs if name == scenario]

    def figures(self, scenario, entrant, figure):
        return {number: figure(run) for number, run in self.runs.get((scenario, entrant), {}).items()}

    def values(self, *what):
        return list(self.figures(*what).values())

    def ratios(self, scenario, entrant, to, figure):
        return paired(self.figures(scenario, entrant, figure), self.figures(scenario, to, figure))


def marks(results, rounds):
    """What is asked, the values, decimals, and what the median has to be."""
    about = {scenario["name"]: scenario for scenario in results["scenarios"]}
    at_most = lambda limit: lambda value: value <= limit  # noqa: E731
    ratio, values = rounds.ratios, rounds.values
    to = lambda server, other: ratio(f"closed-{server}", "holdup", other, cpu_us)  # noqa: E731
    yield "closed, responder: CPU time a request at most 1.10 x the floor's", to("responder", "floor"), 3, at_most(1.10)
    yield "the same, stretch: 1.05 x", to("responder", "floor"), 3, at_most(1.05)
    yield "closed, nginx: at most 1.10 x the floor's", to("nginx", "floor"), 3, at_most(1.10)
    for server in "responder", "nginx":
        yield f"closed, {server}: below wrk's (x wrk's)", to(server, "wrk"), 3, lambda value: value < 1
    yield ("sessions with templates, a capture and a check: CPU time a request at most 1.25 x the plain run's",
           ratio("sessions", "holdup, sessions", "holdup", cpu_us), 3, at_most(1.25))
    fast, economy, precise = "open-20000", "holdup economy", "holdup precise"
    yield "open 20,000/s: economy's CPU time a request at most oha's (x oha's)", ratio(fast, economy, "oha", cpu_us), 3, at_most(1)
    yield ("open 20,000/s: oha's lateness p99 at least 3 x economy's", ratio(fast, "oha", economy, LATE_P99[1]), 2,
           lambda value: value >= 3)
    for name, rate, late in (fast, "20,000", 0.130), ("open-5000", "5,000", 0.110):
        yield f"open {rate}/s, precise: lateness p99 at most {late:.3f} ms", values(name, precise, LATE_P99[1]), 3, at_most(late)
        yield (f"open {rate}/s, precise: gaps below a tenth at most 5 %", values(name, precise, arrival("short_gaps_ratio")), 4,
               at_most(SHORT_GAPS_MOST))
    if "freeze" in about and (truth := frozen_quantile_ms(0.99, about["freeze"]["seconds"], about["freeze"]["stop_seconds"])):
        yield (f"freeze: p99 by default within 1 % of {truth:.0f} ms", values("freeze", "holdup", says("p99_ms")), 1,
               lambda value: abs(value - truth) <= 0.01 * truth)
    if "idle" in about:
        connections, seconds = about["idle"]["connections"], about["idle"]["seconds"]
        yield f"idle: {connections} connections in at most 16 MB", values("idle", "holdup", MEMORY[1]), 1, at_most(16)
        yield f"idle: {connections} connected within 1 s", values("idle", "holdup", connected), 3, at_most(1)
        yield ("idle: memory at the end at most 1.02 x that at 10 s, over 10 minutes", values("idle", "holdup", grown), 3,
               at_most(1.02) if seconds >= SOAK_SECONDS else f"over {seconds} s only")
    yield ("two cores: at least 1.8 x one core's answers",
           ratio("cores", "holdup, 2 loops on cores 0 and 1", "holdup, 1 loop on core 0", ANSWERS[1]), 2, lambda value: value >= 1.8)
    for what, name, base in (("TLS, HTTP/1.1", "tls", "h2load --h1"), ("HTTP/2, 1 stream", "h2-1", "h2load"),
                             ("HTTP/2, 10 streams", "h2-10", "h2load")):
        yield f"{what}: at most 1.3 x h2load's CPU time", ratio(name, "holdup", base, cpu_us), 3, at_most(1.3)


def mark_rows(results, rounds):
    for asked, values, decimals, is_met in marks(results, rounds):
        values = finite(values)
        if not values:
            yield f"| {asked} | not measured | - |"
        elif isinstance(is_met, str):
            yield f"| {asked} | {show(values, decimals)}, but {is_met} | - |"
        else:
            yield f"| {asked} | {show(values, decimals)} | {'yes' if is_met(statistics.median(values)) else 'NO'} |"


def table(about, rounds):
    name, group = about["name"], about["group"]
    compared = COMPARED.get(group, CPU)
    columns = [column for column in COLUMNS.get(group, CLOSED) if column != compared]
    heading = ["tool", *([compared[0], f"x {about['base']}"] if compared else []), *(column[0] for column in columns)]
    yield f"| {' | '.join(heading)} |"
    yield "|" + "---|" * len(heading)
    if about.get("stop_seconds"):
        truth = [frozen_quantile_ms(quantile, about["seconds"], about["stop_seconds"]) for quantile in (0.99, 0.999, 1)]
        cells = ["*by arithmetic*", "-", *(f"{ms:.0f}" if ms is not None else "-" for ms in truth)]
        yield f"| {' | '.join(cells)} |" + " |" * (len(heading) - len(cells))
    for entrant in rounds.entrants(name):
        cells = [entrant]
        if compared:
            cells.append(show(rounds.values(name, entrant, compared[1]), compared[2]))
            cells.append(show(rounds.ratios(name, entrant, about["base"], compared[1]), 3))
        cells += [show(rounds.values(name, entrant, figure), decimals) for _, figure, decimals in columns]
        yield f"| {' | '.join(cells)} |"


def failures(about, rounds, results):
    """What went wrong, and what does not add up."""
    name = about["name"]
    failed = dict.fromkeys(f"- {run['entrant']}: failed: {run['failed'].splitlines()[0]}" for run in results["runs"]
                           if run["scenario"] == name and run.get("failed"))
    yield from failed
    unsaid = lambda run: run["seen"]["requests"] / run["reported"]["completed"] - 1 if run.get("seen") else None  # noqa: E731
    for entrant in rounds.entrants(name):
        shares = finite(rounds.values(name, entrant, unsaid))
        if shares and abs(statistics.median(shares)) > UNSAID_MOST:
            yield f"- {entrant}: the server saw {100 * statistics.median(shares):+.1f} % requests beside those that it counts"


def least(about, rounds):
    """Who needs least of what, and how much holdup needs where that is another."""
    name = about["name"]
    looked_at = {"open": [("CPU time a request", "us", CPU), ("lateness (p99)", "ms", LATE_P99)], "idle": [("memory", "MB", MEMORY), ("time until connected", "s", COLUMNS["idle"][0])]}
    others = [] if about["group"] in ("freeze", "cores", "sessions") else [("CPU time a request", "us", CPU)]
    for what, unit, (_, figure, decimals) in looked_at.get(about["group"], others):
        medians = {entrant: statistics.median(values) for entrant in rounds.entrants(name)
                   if entrant != "floor" and (values := finite(rounds.values(name, entrant, figure)))}
        if medians:
            best = min(medians, key=medians.get)
            ours = "" if best.startswith("holdup") or "holdup" not in medians else f"; holdup {medians['holdup']:.{decimals}f} {unit}"
            yield f"Least {what}: {best}, {medians[best]:.{decimals}f} {unit}{ours}."


def markdown(results):
    rounds, host = Rounds(results), results["host"]
    disturbed = sum(bool(run.get("disturbed")) for run in results["runs"])
    short = f"{host['cores']}c-kernel{'.'.join(host['kernel'].split('.')[:2])}"
    lines = [f"# holdup beside its peers: {results['date']}, {short}", ""]
    if results.get("quick"):
        lines += ["**A quick look whether everything works: these figures mean nothing.**", ""]
    lines += [f"{host['cpu_model']}, {host['cores']} cores, Linux {host['kernel']}, {host['memory_bytes'] / 1e9:.0f} GB, {host['system']}. "
              "Server and tool have a core each; tools take turns within a round, and ratios are taken within a round. Medians, with least and "
              "most of all rounds. How to read it: [bench/README.md](../../README.md); every single run: results.json; what the tools printed: "
              "raw/.", "",
              f"{disturbed} of {len(results['runs'])} runs were disturbed (more than 10 % of the machine's CPU time stolen) and repeated; "
              "figures are of the last attempt of each round.", "",
              "## Marks", "", "| mark | measured | met |", "|---|---|---|", *mark_rows(results, rounds)]
    for about in results["scenarios"]:
        lines += ["", f"## {about['name']}", "", f"{about['about'][0].upper()}{about['about'][1:]}.", "", *table(about, rounds)]
        bullets = list(failures(about, rounds, results))
        lines += ["", *bullets] if bullets else []
        lines += [line for sentence in least(about, rounds) for line in ("", sentence)]
    lines += ["", "## Versions", "", *(f"- {name}: {version}" for name, version in sorted(results["versions"].items())),
              *(f"- {name}: not here: {why}" for name, why in sorted(results["absent"].items()))]
    return "\n".join(lines) + "\n"
