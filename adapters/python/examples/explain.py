"""Why a token may not follow, and what the grammar is."""

import louver

vocabulary = louver.toy_vocabulary([b"abx"])
constraint = louver.Engine(vocabulary).compile_regex("ab[cd]?")
matcher = constraint.matcher()
why = matcher.refusal(vocabulary.find(b"abx"))
print(why)
print(constraint.grammar)
assert "its byte 2 (x) is not allowed" in why and matcher.refusal(ord("a")) is None
