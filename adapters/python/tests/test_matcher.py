"""Matchers: tokens, rollback, forks, forced text, and where masks are written."""

import array
import copy

import louver
import numpy
import pytest
import toys


def spell(vocabulary, matcher):
    return vocabulary.decode(matcher.tokens)


def test_rollback_restores_masks(engine, vocabulary):
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}
    constraint = engine.compile_json_schema(schema)
    rng = toys.rng(1)
    matcher, masks = constraint.matcher(), []
    for _ in range(40):
        masks.append(matcher.mask())
        allowed = [t for t in masks[-1].nonzero()[0] if t != 256]
        matcher.advance(int(rng.choice(allowed)))
    for n in (1, 3, 7):
        tokens = matcher.tokens
        matcher.rollback(n)
        assert matcher.tokens == tokens[:-n]
        assert (matcher.mask() == masks[len(tokens) - n]).all()
    matcher.reset()
    assert matcher.tokens == [] and (matcher.mask() == masks[0]).all()
    matcher.rollback(99)
    assert matcher.tokens == []


def test_forks_are_independent(engine):
    matcher = engine.compile_regex("a*b").matcher()
    matcher.advance(ord("a"))
    for fork in (matcher.fork(), copy.copy(matcher), copy.deepcopy(matcher)):
        fork.advance(ord("b"))
        assert fork.is_complete() and not matcher.is_complete()
        assert matcher.tokens == [ord("a")]
        assert fork.constraint is matcher.constraint


def test_a_rejected_token_changes_nothing(engine):
    matcher = engine.compile_regex("abc").matcher()
    with pytest.raises(louver.AdvanceError) as caught:
        matcher.advance_all(b"abx")
    error = caught.value
    assert (error.reason, error.token, error.offset, error.index) == ("rejected", ord("x"), 0, 2)
    assert "expected [c]" in str(error)
    assert matcher.tokens == []
    assert not matcher.try_advance(ord("b")) and matcher.try_advance(ord("a"))
    assert matcher.allowed_prefix(b"bcd") == 2 and matcher.tokens == [ord("a")]
    assert "expected [b]" in matcher.refusal(ord("x")) and matcher.refusal(ord("b")) is None


def test_the_end(engine):
    matcher = engine.compile_regex("ab?").matcher()
    assert not matcher.is_complete() and not matcher.allows(256)
    matcher.advance(ord("a"))
    assert matcher.is_complete() and not matcher.is_terminated()
    matcher.advance(256)
    assert matcher.is_terminated() and matcher.tokens == [ord("a"), 256]
    assert matcher.mask().nonzero()[0].tolist() == [256]
    with pytest.raises(louver.AdvanceError) as caught:
        matcher.advance(256)
    assert caught.value.reason == "terminated"
    matcher.rollback()
    assert not matcher.is_terminated() and matcher.allows(ord("b"))


@pytest.mark.parametrize("ids", [[97, 98], (97, 98), b"ab", numpy.array([97, 98]),
                                 array.array("l", [97, 98]), iter([97, 98])], ids=repr)
def test_tokens_are_any_iterable(engine, ids):
    matcher = engine.compile_regex("ab").matcher()
    matcher.advance_all(ids)
    assert matcher.is_complete()


@pytest.mark.parametrize("token", [-1, 10**6, 2**31, 2**40])
def test_unknown_ids_are_refused(engine, token):
    matcher = engine.compile_regex(".*").matcher()
    assert not matcher.try_advance(token) and not matcher.allows(token)
    with pytest.raises(louver.AdvanceError) as caught:
        matcher.advance(token)
    assert caught.value.reason == "unknown_token"
    is_id = 0 <= token < 2**32
    assert caught.value.token == (token if is_id else None)
    assert not is_id or str(token) in str(caught.value)


def test_forced_text(engine, vocabulary):
    matcher = engine.compile_json_schema({"const": {"a": "only"}}, whitespace="compact").matcher()
    assert matcher.forced_bytes() == b'{"a":"only"}' and matcher.forced_bytes(3) == b'{"a'
    forced = matcher.forced_tokens()
    matcher.advance_all(forced)
    assert matcher.is_complete() and vocabulary.decode(forced) == b'{"a":"only"}'


def test_forced_tokens_are_cut_by_the_tokenizer():
    vocabulary = toys.chat_vocabulary()
    matcher = louver.Engine(vocabulary).compile_choice(["true id"]).matcher()
    forced = matcher.forced_tokens()
    assert forced == vocabulary.encode("true id") and len(forced) == 3


def test_captures_and_resumption(engine):
    grammar = 'start: "hi " who\nwho[capture]: /[a-z]+/\n'
    matcher = engine.compile_lark(grammar).matcher()
    matcher.advance_all(b"hi ann")
    matcher.advance(256)
    assert matcher.captures() == [("who", b"ann", (3, 6))]
    narrow, wide = engine.compile_regex("a"), engine.compile_regex("a|ab")
    matcher = narrow.matcher()
    matcher.advance(ord("a"))
    assert matcher.resumed_in(wide).allows(ord("b"))
    with pytest.raises(ValueError, match="does not allow"):
        matcher.resumed_in(engine.compile_regex("b"))


def test_a_limit_ends_the_sequence(vocabulary):
    engine = louver.Engine(vocabulary, limits={"mask_fuel": 1})
    matcher = engine.compile_json_schema({}).matcher()
    assert matcher.mask().nonzero()[0].tolist() == [256]
    assert "fuel" in matcher.limit
    with pytest.raises(louver.LimitError):
        engine.compile_json_schema({}).make_first_mask()


def words_of(matcher):
    out = numpy.zeros(matcher.vocabulary.mask_words, dtype=numpy.int32)
    matcher.fill_mask(out)
    return out


def test_masks_are_written_in_place(engine, vocabulary):
    matcher = engine.compile_regex("ab|ba").matcher()
    words = words_of(matcher)
    n = len(words)
    batch = numpy.full((3, n), 7, dtype=numpy.int32)
    matcher.fill_mask(batch, 1)
    assert (batch[1] == words).all() and (batch[[0, 2]] == 7).all()
    matcher.fill_mask(batch[2])
    assert (batch[2] == words).all() and (batch[0] == 7).all()
    unsigned = numpy.zeros(n, dtype=numpy.uint32)
    matcher.fill_mask(unsigned)
    assert (unsigned.view(numpy.int32) == words).all()
    flags = numpy.ones((2, vocabulary.width), dtype=bool)
    matcher.fill_mask(flags, 0)
    assert (flags[0] == matcher.mask()).all() and flags[1].all()
    assert (louver.masks.unpack(words)[: vocabulary.width] == matcher.mask()).all()


def test_any_writable_buffer_will_do(engine):
    matcher = engine.compile_regex("ab|ba").matcher()
    words = words_of(matcher)
    for buffer in (bytearray(4 * len(words)), array.array("i", [0] * len(words)),
                   array.array("I", [0] * len(words))):
        matcher.fill_mask(buffer)
        assert bytes(memoryview(buffer).cast("B")) == words.tobytes()
    matcher.fill_mask(memoryview(buffer := bytearray(4 * len(words))))
    assert bytes(buffer) == words.tobytes()


@pytest.mark.parametrize("make, row, error", [
    (lambda n: numpy.zeros(n + 1, dtype=numpy.int32), None, ValueError),
    (lambda n: numpy.zeros((2, n), dtype=numpy.int32), None, ValueError),
    (lambda n: numpy.zeros((2, n), dtype=numpy.int32), 2, ValueError),
    (lambda n: numpy.zeros((n, 2), dtype=numpy.int32)[:, 0], None, ValueError),
    (lambda n: numpy.zeros((2, n), dtype=numpy.int32, order="F"), 0, ValueError),
    (lambda n: numpy.zeros(n, dtype=numpy.float32), None, TypeError),
    (lambda n: numpy.zeros(n, dtype=numpy.int64), None, TypeError),
    (lambda n: bytes(4 * n), None, ValueError),
    (lambda n: numpy.broadcast_to(numpy.int32(0), n), None, ValueError),
    (lambda n: bytearray(4 * n + 1), None, ValueError),
    (lambda n: "text", None, TypeError),
    (lambda n: None, None, TypeError),
], ids=range(12))
def test_other_buffers_are_refused(engine, vocabulary, make, row, error):
    matcher = engine.compile_regex("a").matcher()
    with pytest.raises(error):
        matcher.fill_mask(make(vocabulary.mask_words), row)
    assert matcher.allows(ord("a"))


def test_batches_equal_single_masks(engine, vocabulary):
    constraints = [engine.compile_regex("[ab]*c"), engine.compile_json_schema({}),
                   engine.compile_choice(["yes", "no"]), engine.compile_regex("(?s:.*)")]
    matchers = [constraint.matcher() for constraint in constraints for _ in range(12)]
    rng = toys.rng(3)
    for matcher in matchers:
        for _ in range(rng.randrange(6)):
            allowed = [t for t in matcher.mask().nonzero()[0] if t != 256]
            if allowed:
                matcher.advance(int(rng.choice(allowed)))
    matchers[5].reset()
    matchers[5].advance_all(b"c")
    matchers[5].advance(256)
    rows = [*matchers, None]
    masks = louver.allocate_masks(len(rows), vocabulary)
    masks[:] = 0
    statuses = engine.fill_masks(rows, masks)
    for matcher, row in zip(matchers, masks):
        assert (row == words_of(matcher)).all()
    assert louver.masks.unpack(masks[-1])[: vocabulary.width].all()
    assert statuses[-1] == louver.RowStatus.FREE and statuses[5] == louver.RowStatus.FINISHED
    assert statuses[0] == louver.RowStatus.CONSTRAINED
    flags = numpy.zeros((len(rows), vocabulary.width), dtype=bool)
    assert engine.fill_masks(tuple(rows), flags) == statuses
    assert (flags == louver.masks.unpack(masks)[:, : vocabulary.width]).all()


def test_batches_that_cannot_be_filled(engine, vocabulary):
    matcher = engine.compile_regex("a").matcher()
    masks = louver.allocate_masks(2, vocabulary)
    with pytest.raises(RuntimeError, match="row 1 is given twice"):
        engine.fill_masks([matcher, matcher], masks)
    with pytest.raises(ValueError, match="shape"):
        engine.fill_masks([matcher], masks)
    with pytest.raises(TypeError):
        engine.fill_masks([matcher, 1], masks)
    other = louver.Engine(louver.toy_vocabulary([b"x" * 9])).compile_regex("a").matcher()
    with pytest.raises(ValueError, match="vocabulary"):
        engine.fill_masks([matcher, other], masks)
    assert (masks == -1).all()


@pytest.mark.parametrize("kind", ["bits", "flags"])
def test_apply_mask(engine, vocabulary, kind):
    matcher = engine.compile_regex("a|b").matcher()
    mask = matcher.mask() if kind == "flags" else words_of(matcher)
    logits = numpy.zeros(vocabulary.width, dtype=numpy.float32)
    assert louver.apply_mask(logits, mask) is logits
    assert numpy.isfinite(logits).nonzero()[0].tolist() == [97, 98]
    wide = numpy.zeros((1, vocabulary.width + 40), dtype=numpy.float16)
    louver.apply_mask(wide, mask[None])
    assert numpy.isfinite(wide).nonzero()[1].tolist() == [97, 98]
    with pytest.raises(ValueError):
        louver.apply_mask(numpy.zeros(200), mask)
    with pytest.raises(ValueError):
        louver.apply_mask(numpy.zeros((2, vocabulary.width)), mask)
