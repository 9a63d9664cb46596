"""Checks a verdict against the published schema, and every piece of its evidence against the recording.

contract.py KIND JSON [NAME=RECORDING...]: KIND is a definition of the schema (diagnosis, demo, lab); NAME is the
key of a verdict inside JSON ("" if JSON is one itself). Prints what is wrong; exit 1 if anything is.
"""

import json
import pathlib
import sys

import duckdb
import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[5]
TIME = {"requests": "intended_at", "spans": "started_at", "exchanges": "request_at"}
# A counter's growth over a window belongs to the samples on both sides of it.
MARGIN_S = 2.5


def schema_problems(kind, document):
    schema = json.loads((ROOT / "docs/schema/verdict.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{kind}"})
    return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(document)]


def unresolved(evidence, recording, started_at):
    """Why `evidence` points at nothing, or None."""
    path = recording / f"{evidence['table']}.parquet"
    if not path.exists():
        return f"no {path.name}"
    con = duckdb.connect()
    columns = [row[0] for row in con.execute("describe select * from read_parquet(?)", [str(path)]).fetchall()]
    if evidence["column"] not in columns:
        return f"no column {evidence['column']} in {path.name}"
    wanted, parameters = [f'"{evidence["column"]}" is not null'], [str(path)]
    for name, value in evidence["labels"].items():
        if evidence["table"] == "samples" and name != "metric":
            wanted.append("json_extract_string(labels, ?) = ?")
            parameters += [f'$."{name}"', value]
        elif evidence["table"] == "threads" and name == "directory":
            wanted.append("(path = ? or starts_with(path, ? || '/'))")
            parameters += [value.rstrip("/")] * 2
        elif name in columns:
            wanted.append(f'"{name}" = ?')
            parameters.append(value)
        else:
            return f"label {name} is no column of {path.name}"
    window = evidence["window"]
    if window is not None:
        column = TIME.get(evidence["table"], "observed_at")
        wanted.append(f'epoch_ns("{column}") between ? and ?')
        parameters += [started_at + int((window[k] + s) * 1e9) for k, s in (("from_s", -MARGIN_S), ("to_s", MARGIN_S))]
    rows = con.execute(f"select count(*) from read_parquet(?) where {' and '.join(wanted)}", parameters).fetchone()[0]
    return None if rows else "no such row"


def evidence_problems(verdict, recording):
    started_at = json.loads((recording / "manifest.json").read_text())["started_at"]
    problems, seen = [], 0
    entries = {**verdict, "next": [verdict["next"]] if "next" in verdict else []}
    for kind in ("findings", "cleared", "next"):
        for entry in entries[kind]:
            for evidence in entry["evidence"]:
                seen += 1
                why = unresolved(evidence, recording, started_at)
                if why:
                    problems.append(f"{kind} {entry['cause']}: {why}: {json.dumps(evidence)}")
    return problems if seen else ["there is no evidence at all"]


def chain_problems(verdict):
    """Followed upwards, every finding ends at one that follows from none; a note that matters names a finding."""
    findings = {f["cause"]: f for f in verdict["findings"]}
    problems = []
    for cause, finding in findings.items():
        seen = {cause}
        while (cause := finding.get("follows_from")) is not None:
            if cause in seen or cause not in findings:
                problems.append(f"chain: {sorted(seen)} follows from {cause}")
                break
            seen.add(cause)
            finding = findings[cause]
    for note in verdict["notes"]:
        if "finding" in note and note["finding"] not in findings:
            problems.append(f"note {note['check']}: no finding {note['finding']}")
    return problems


def ledger_problems(verdict):
    """Parts and residual must add up to the response time, to the rounding of what is printed."""
    problems = []
    for row in verdict["ledger"]:
        total = sum(part["ms"] for part in row["parts"]) + row["residual_ms"]
        if abs(total - row["response_ms"]) > 0.01 + 0.001 * len(row["parts"]):
            problems.append(f"ledger {row['operation']} {row['band']}: {total} is not {row['response_ms']}")
    return problems


def main():
    kind, path, *recordings = sys.argv[1:]
    document = json.loads(pathlib.Path(path).read_text())
    problems = schema_problems(kind, document)
    for pair in recordings:
        name, recording = pair.split("=", 1)
        verdict = document[name] if name else document
        problems += evidence_problems(verdict, pathlib.Path(recording)) + ledger_problems(verdict) + chain_problems(verdict)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


main()
