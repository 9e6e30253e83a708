"""One engine and one constraint for all threads, a matcher for each sequence."""

from concurrent.futures import ThreadPoolExecutor

import louver

vocabulary = louver.toy_vocabulary()
constraint = louver.Engine(vocabulary).compile_json_schema({"type": "array"})


def complete(prefix):
    matcher = constraint.matcher()
    matcher.advance_all(prefix)
    matcher.advance_all(matcher.shortest_completion_tokens())
    return vocabulary.decode(matcher.tokens)


with ThreadPoolExecutor(4) as pool:
    texts = list(pool.map(complete, [b"[", b"[[1,", b'["a', b"[{"]))
print(texts)
assert texts[0] == b"[]" and texts[2] == b'["a"]' and texts[3] == b"[{}]"
