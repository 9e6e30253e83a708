"""Masks of a batch, made on several threads. One row is not constrained."""

import louver

vocabulary = louver.toy_vocabulary()
engine = louver.Engine(vocabulary)
digits, answer = engine.compile_regex("[0-9]{3}"), engine.compile_choice(["yes", "no"])
rows = [digits.matcher(), answer.matcher(), None, digits.matcher()]
rows[3].advance_all(b"123")
masks = louver.allocate_masks(len(rows), vocabulary)
statuses = engine.fill_masks(rows, masks)
allowed = louver.masks.unpack(masks).sum(axis=1)
print([str(status) for status in statuses], allowed)
assert statuses[2] == louver.RowStatus.FREE
assert allowed[0] == 10 and allowed[1] == 2 and allowed[3] == 1
