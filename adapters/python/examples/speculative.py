"""Checking the draft of another model: masks of every place, then back."""

import louver

vocabulary = louver.toy_vocabulary()
matcher = louver.Engine(vocabulary).compile_regex("(ab)+").matcher()
draft = list(b"ababx")
accepted = matcher.allowed_prefix(draft)
assert accepted == 4
masks = louver.allocate_masks(accepted + 1, vocabulary)
for row, token in enumerate([*draft[:accepted], None]):
    matcher.fill_mask(masks, row)
    if token is not None:
        matcher.advance(token)
matcher.rollback(accepted)
assert matcher.tokens == [] and (masks[0] == masks[2]).sum() >= len(masks[0]) - 2
fork = matcher.fork()
fork.advance(ord("a"))
assert matcher.tokens == []
