"""A schema that is too costly to enforce as a whole: refused, or relaxed and reported."""

import louver

engine = louver.Engine(louver.toy_vocabulary(), limits={"automaton_states": 1000})
schema = {"type": "string", "pattern": "^(?!c)[ab]*a[ab]{10}$"}
try:
    engine.compile_json_schema(schema)
    raise AssertionError
except louver.SchemaError as error:
    print("refused:", error)
constraint = engine.compile_json_schema(schema, policy="validate")
print("relaxed:", *constraint.relaxed)
assert [fault.keyword for fault in constraint.relaxed] == ["pattern"]
