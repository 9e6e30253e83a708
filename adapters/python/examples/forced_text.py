"""Skipping the model where only one continuation is allowed."""

import louver

vocabulary = louver.toy_vocabulary([b'{"id"', b": ", b'"name"'])
schema = {"type": "object", "required": ["id", "name"], "additionalProperties": False,
          "properties": {"id": {"type": "integer"}, "name": {"const": "x"}}}
matcher = louver.Engine(vocabulary).compile_json_schema(
    schema, whitespace="python_like", order="fixed").matcher()
forced = matcher.forced_tokens()
print([vocabulary.bytes(token) for token in forced])
matcher.advance_all(forced)
matcher.advance_all(b"7,")
matcher.advance_all(matcher.forced_tokens())
assert matcher.is_complete()
assert vocabulary.decode(matcher.tokens) == b'{"id": 7, "name": "x"}'
