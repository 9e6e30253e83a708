"""The first mask: which tokens may follow."""

import louver

vocabulary = louver.toy_vocabulary([b"true", b"false"])
constraint = louver.Engine(vocabulary).compile_json_schema({"type": "boolean"})
matcher = constraint.matcher()
print([vocabulary.bytes(int(token)) for token in matcher.mask().nonzero()[0]])
matcher.advance(vocabulary.find(b"true"))
assert matcher.is_complete()
