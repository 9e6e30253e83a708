"""Free text with tags: inside of one, a schema holds."""

import louver

TAG = {"type": "structural_tag", "format": {
    "type": "triggered_tags", "triggers": ["<n>"],
    "tags": [{"begin": "<n>", "end": "</n>",
              "content": {"type": "json_schema", "json_schema": {"type": "integer"}}}]}}
engine = louver.Engine(louver.toy_vocabulary())
matcher = engine.compile_structural_tag(TAG).matcher()
matcher.advance_all(b"The answer is <n>4")
assert not matcher.is_complete() and not matcher.allows(ord("x"))
matcher.advance_all(b"2</n>, I think.")
assert matcher.is_complete()
