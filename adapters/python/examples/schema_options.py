"""Options of a JSON Schema: white space, order of members, and further references."""

import louver

engine = louver.Engine(louver.toy_vocabulary())
schema = {"type": "object", "required": ["size", "unit"], "additionalProperties": False,
          "properties": {"size": {"type": "integer"}, "unit": {"$ref": "https://example.org/unit"}}}
constraint = engine.compile_json_schema(
    schema, registry={"https://example.org/unit": {"enum": ["m", "s"]}},
    whitespace={"exact": {"after_comma": 1, "after_colon": 0}}, order="fixed", max_digits=3)
matcher = constraint.matcher()
assert matcher.forced_bytes() == b'{"size":'
assert matcher.allowed_prefix(b'{"size":120, "unit":"m"}') == 24
assert matcher.allowed_prefix(b'{"size":1200') == 11
