"""The backend for vLLM, driven as its documentation says the scheduler does: grammars compiled in
the background, a row of the bit mask for each token of a draft, rollback, and rows that are not
constrained. vLLM itself is not here."""

import concurrent.futures
import enum
import json
import types

import louver
import louver.vllm
import numpy
import pytest
import toys

Options = enum.Enum("Options", "JSON JSON_OBJECT REGEX GRAMMAR CHOICE STRUCTURAL_TAG")


class Backend:
    """Of a fast tokenizer, what the backend reads."""

    def to_str(self):
        return toys.tokenizer_json([("t", "r"), ("u", "e"), ('{', '"')])


class Tokenizer:
    backend_tokenizer = Backend()
    eos_token_id = 260


WIDTH = 300


def backend(config=None):
    return louver.vllm.LouverBackend(config, Tokenizer(), WIDTH)


class Scheduler:
    """The part of a scheduler that uses grammars. `model(row_of_flags)` samples."""

    def __init__(self, backend, rows):
        self.backend = backend
        self.bitmask = backend.allocate_token_bitmask(rows)
        self.words = numpy.asarray(self.bitmask)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.requests = {}

    def add(self, name, kind, spec):
        self.requests[name] = self.pool.submit(self.backend.compile_grammar, kind, spec)

    def fill(self, drafts):
        """Rows of all requests: one a draft token, and one after them. `None`: unconstrained."""
        row, first = 0, {}
        for name, draft in drafts.items():
            first[name], advanced = row, 0
            grammar = self.requests[name].result() if self.requests.get(name) else None
            for token in [*draft, None]:
                if grammar is None or grammar.is_terminated():
                    self.words[row] = -1
                else:
                    grammar.fill_bitmask(self.bitmask, row)
                    if token is not None:
                        assert grammar.accept_tokens(name, [token])
                        advanced += 1
                row += 1
            if advanced:
                grammar.rollback(advanced)
        return first

    def flags(self, row):
        return louver.masks.unpack(self.words)[row, :WIDTH]


def generate(scheduler, name, rng, draft_length=0, steps=60):
    grammar = scheduler.requests[name].result()
    tokens, drafted = [], 0
    while not grammar.is_terminated() and len(tokens) < steps:
        before = grammar.matcher.tokens
        draft = [int(rng.randrange(256)) for _ in range(draft_length)]
        if draft and rng.random() < 0.7:
            draft = grammar.matcher.forced_tokens()[:draft_length] + draft[:1]
        draft = grammar.validate_tokens(draft)
        drafted += len(draft)
        row = scheduler.fill({"free": [], name: draft})[name]
        assert grammar.matcher.tokens == before, "drafts are rolled back"
        assert scheduler.words[0].tolist() == [-1] * len(scheduler.words[0])
        accepted = []
        for token in draft:
            assert scheduler.flags(row)[token], "a validated draft token has its bit"
            if rng.random() < 0.3:
                break
            accepted.append(token)
            row += 1
        accepted.append(int(rng.choice(scheduler.flags(row).nonzero()[0])))
        assert grammar.accept_tokens(name, accepted)
        tokens += accepted
    return tokens, drafted


SPECS = [
    (Options.JSON, '{"enum": ["on", "only", [true]]}', lambda text: json.loads(text)),
    (Options.REGEX, "[ab]{2,6}c", lambda text: text.endswith("c")),
    (Options.GRAMMAR, 'root ::= ("true" | "x") "!"\n', lambda text: text in ("true!", "x!")),
    (Options.GRAMMAR, 'start: "true" | "x" "!"\n', lambda text: text in ("true", "x!")),
    (Options.CHOICE, '["yes", "no"]', lambda text: text in ("yes", "no")),
    (Options.CHOICE, "['yes', 'no']", lambda text: text in ("yes", "no")),
    (Options.STRUCTURAL_TAG, json.dumps({"type": "structural_tag", "format": {
        "type": "tag", "begin": "<n>", "end": "</n>",
        "content": {"type": "regex", "pattern": "[0-9]"}}}), lambda text: text[:3] == "<n>"),
]


@pytest.mark.parametrize("text, is_lark", [
    ('start: "a"', True),
    ("A: /x/\n?start : A", True),
    ("%import common.INT\n!start: INT", True),
    ("\n    start: A\n    A: /::=/\n", True),
    ("start[capture]: /x/", True),
    ('start [capture="a", lazy] .2 : /x/', True),
    ("?start.-1: /x/", True),
    ('root ::= start\nstart ::= "a"', False),
    ('  start[x] ::= "a"', False),
    ('start := "a"', False),
    ('root ::= "start: "', False),
    ('restart: "a"', False),
    ("start.two: /x/", False),
])
def test_lark_is_told_by_its_start_rule(text, is_lark):
    assert bool(louver.vllm.LARK_START.search(text)) is is_lark


@pytest.mark.parametrize("kind, spec, check", SPECS, ids=range(len(SPECS)))
@pytest.mark.parametrize("draft_length", [0, 4])
def test_requests_end_in_their_grammar(kind, spec, check, draft_length):
    scheduler = Scheduler(backend(), 8)
    drafted = 0
    for seed in range(6):
        name = f"request-{seed}"
        scheduler.add(name, kind, spec)
        tokens, more = generate(scheduler, name, toys.rng(seed), draft_length)
        drafted += more
        assert tokens[-1] == Tokenizer.eos_token_id
        assert check(scheduler.backend.vocabulary.decode(tokens).decode())
    assert (drafted > 0) == (draft_length > 0)


def test_json_object_and_width():
    scheduler = Scheduler(backend(), 4)
    assert scheduler.words.shape == (4, -(-WIDTH // 32))
    scheduler.add("a", Options.JSON_OBJECT, "")
    row = scheduler.fill({"a": []})["a"]
    shown = {scheduler.backend.vocabulary.bytes(t) for t in scheduler.flags(row).nonzero()[0]}
    assert shown == {b"{", b'{"'}


def test_a_wrong_token_takes_nothing():
    grammar = backend().compile_grammar("regex", "abc")
    assert not grammar.accept_tokens("a", [97, 99]) and grammar.matcher.tokens == []
    assert grammar.validate_tokens([97, 98, 98]) == [97, 98]
    assert grammar.accept_tokens("a", [97, 98, 99, 260, 260]) and grammar.is_terminated()
    grammar.rollback(2)
    assert not grammar.is_terminated() and grammar.validate_tokens([99]) == [99]
    grammar.reset()
    assert grammar.validate_tokens([97]) == [97]


def test_stop_tokens_of_the_configuration():
    model = types.SimpleNamespace(try_get_generation_config=lambda: {"eos_token_id": [259, 260]})
    made = backend(types.SimpleNamespace(model_config=model))
    assert made.vocabulary.stop_tokens == [259, 260]
    assert backend().vocabulary.stop_tokens == [260]
    made.destroy()


def test_errors():
    made = backend()
    with pytest.raises(ValueError, match="no structured output of type NONE"):
        made.compile_grammar(enum.Enum("Other", "NONE").NONE, "")
    with pytest.raises(louver.SchemaError):
        made.compile_grammar(Options.JSON, '{"type": "x"}')
    with pytest.raises(louver.LouverError, match="fast tokenizer"):
        louver.vllm.LouverBackend(None, object(), WIDTH)
