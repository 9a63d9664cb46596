"""Holds scenarios against their published schema: scenarios.py good|bad FILE... Placeholders of labs become a number."""

import json
import pathlib
import re
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[5]


def main():
    expected, *files = sys.argv[1:]
    schema = json.loads((ROOT / "docs/schema/scenario.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    wrong = 0
    for path in files:
        text = re.sub(r"\{(port|pid)\.\w+\}", "8080", pathlib.Path(path).read_text())
        errors = [f"{e.json_path}: {e.message[:200]}" for e in validator.iter_errors(yaml.safe_load(text))]
        if bool(errors) != (expected == "bad"):
            wrong += 1
            print(path, errors or "is accepted")
    sys.exit(1 if wrong else 0)


main()
