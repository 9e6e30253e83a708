"""Walks over masks end in instances of the schema."""

import json
import os
import pathlib

import jsonschema
import louver
import pytest
import toys

SCHEMAS = [
    {},
    {"type": "object", "required": ["name", "age"], "additionalProperties": False,
     "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 8},
                    "age": {"type": "integer", "minimum": 0, "maximum": 150},
                    "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}}},
    {"$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "number", "multipleOf": 0.5},
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
        "required": ["value"], "additionalProperties": False}}, "$ref": "#/$defs/node"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
    {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "minItems": 2,
     "items": {"type": "integer"}, "maxItems": 4},
    {"oneOf": [{"type": "object", "properties": {"kind": {"const": "x"}}, "required": ["kind"]},
               {"type": "integer", "exclusiveMinimum": 3}]},
    {"type": "object", "patternProperties": {"^n_": {"type": "number"}},
     "additionalProperties": False, "maxProperties": 3},
]


def valid(schema):
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return jsonschema.Draft202012Validator(schema, format_checker=checker)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:40])
def test_random_walks_are_instances(engine, vocabulary, schema):
    constraint = engine.compile_json_schema(schema)
    for seed in range(25):
        tokens = toys.walk(constraint.matcher(), toys.rng(seed), steps=40)
        valid(schema).validate(json.loads(vocabulary.decode(tokens)))


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:40])
def test_greedy_walks_are_instances(engine, vocabulary, schema):
    """A model that always wants the same token: the mask alone leads to an instance."""
    constraint = engine.compile_json_schema(schema, max_digits=6)
    for prefer in (min, max):
        greedy = lambda allowed: int(prefer(allowed))
        tokens = toys.walk(constraint.matcher(), toys.rng(), steps=60, prefer=greedy)
        valid(schema).validate(json.loads(vocabulary.decode(tokens)))


def test_a_big_schema(vocabulary):
    names = [f"member_{k:04}" for k in range(1500)]
    leaf = {"type": "object", "additionalProperties": False, "required": ["id"], "properties": {
        "id": {"type": "integer"}, "note": {"type": "string", "maxLength": 20}}}
    schema = {"type": "object", "additionalProperties": False, "required": names[:2],
              "properties": {name: {"$ref": "#/$defs/leaf"} for name in names},
              "$defs": {"leaf": leaf}}
    assert len(json.dumps(schema)) > 60_000
    constraint = louver.Engine(vocabulary).compile_json_schema(schema)
    for seed in range(3):
        tokens = toys.walk(constraint.matcher(), toys.rng(seed), steps=60)
        valid(schema).validate(json.loads(vocabulary.decode(tokens)))


def test_schemas_that_people_use(vocabulary):
    """Some of a collection beside the repository, where it is."""
    folder = os.environ.get("LOUVER_DATA") or pathlib.Path(__file__).parents[4] / "shared" / "data"
    file = pathlib.Path(folder) / "realworld-dev.jsonl"
    if not file.exists():
        pytest.skip(f"no {file}: set LOUVER_DATA to the folder with realworld-dev.jsonl")
    engine, seen = louver.Engine(vocabulary), 0
    for line in file.read_text().splitlines()[::40]:
        case = json.loads(line)
        try:
            constraint = engine.compile_json_schema(case["schema"])
        except louver.SchemaError as error:
            assert error.faults, case["id"]
            continue
        matcher = constraint.matcher()
        for test in case["tests"]:
            if test["valid"]:
                matcher.reset()
                text = json.dumps(test["data"], ensure_ascii=False).encode()
                seen += matcher.allowed_prefix(text) == len(text)
    assert seen > 20


def test_compiled_once(engine):
    schema = {"type": "object", "properties": {"once": {"type": "string"}}}
    first = engine.compile_json_schema(schema)
    matcher = engine.compile_json_schema({**schema, "title": "again"}).matcher()
    matcher.advance_all(b'{"once')
    assert matcher.resumed_in(first).tokens == matcher.tokens
