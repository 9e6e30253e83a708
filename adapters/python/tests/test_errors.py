"""Bad input raises exceptions that name the place; a panic of the engine is never seen."""

import pickle

import louver
import pytest
import toys

S, G, R, C = louver.SchemaError, louver.GrammarError, louver.RequestError, louver.CompileError
F = louver.FormatError
TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}


def tools(tools=(TOOL,), format="qwen3", **options):
    return lambda engine: engine.compile_tools(list(tools), format=format, **options)


def of(kind, *arguments, **options):
    return lambda engine: getattr(engine, f"compile_{kind}")(*arguments, **options)


#: The call, the exception, and members of it.
CASES = [
    (of("json_schema", {"properties": {"a": {"type": "text"}}}), S,
     {"pointer": "/properties/a/type", "keyword": "type"}),
    (of("json_schema", {"$defs": {"a/b": {"minimum": "1"}}, "$ref": "#/$defs/a~1b"}), S,
     {"pointer": "/$defs/a~1b/minimum"}),
    (of("json_schema", {"minimum": 3, "maximum": 2, "type": "integer"}), S, {}),
    (of("json_schema", '{"a": 1,\n "b": }'), S, {"line": 2, "column": 7}),
    (of("json_schema", "{"), S, {"line": 1, "column": 2}),
    (of("json_schema", float("nan")), S, {}),
    (of("json_schema", {"$ref": "https://example.org/none"}), S, {"pointer": "/$ref"}),
    (of("json_schema", {}, registry={"https://example.org/x": "{"}), S, {}),
    (of("json_schema", {}, nothing=1), TypeError, {}),
    (of("json_schema", {}, whitespace="wide"), ValueError, {}),
    (of("json_schema", {}, whitespace={"flexible": {"max": -1}}), ValueError, {}),
    (of("json_schema", object()), TypeError, {}),
    (of("json_schema", "\ud800"), ValueError, {}),
    (of("regex", "a(b"), G, {"line": 1, "column": 2}),
    (of("regex", r"(a)\1"), G, {"line": 1, "column": 4}),
    (of("regex", r"a\b\B{100000}"), ValueError, {}),
    (of("ebnf", "root ::= itm\nitem ::= [a-z]\n"), G, {"line": 1, "column": 10}),
    (of("ebnf", "root ::= \"a\n"), G, {"line": 1}),
    (of("ebnf", "", root="x"), G, {}),
    (of("ebnf", "a ::= a", root="a"), C, {}),
    (of("ebnf", "root ::= <none>"), ValueError, {}),
    (of("ebnf", "root ::= 'a'", dialect="latin"), ValueError, {}),
    (of("lark", "start: itm\n"), G, {"line": 1, "column": 8}),
    (of("lark", "start: %json {\"type\": 1}\n"), G, {"line": 1}),
    (of("structural_tag", {"type": "structural_tag", "format": {"type": "none"}}), R,
     {"pointer": "/format/type"}),
    (of("structural_tag", "["), R, {}),
    (of("choice", []), C, {}),
    (of("choice", [1]), TypeError, {}),
    (tools([{"type": "function", "function": {"name": 1}}]), R,
     {"pointer": "/tools/0/function/name"}),
    (tools([TOOL, TOOL]), R, {"pointer": "/tools/1/function/name"}),
    (tools([{"name": "t", "parameters": {"type": "object", "properties": {"x": {"type": 1}}}}]), S,
     {"pointer": "/tools/0/parameters/properties/x/type"}),
    (tools(tool_choice="must"), R, {}),
    (tools(tool_choice={"type": "function", "function": {"name": "u"}}), R, {}),
    (tools([], tool_choice="required"), R, {}),
    (tools(stop=[""]), R, {}),
    (tools(parallel=0), ValueError, {}),
    (tools(reasoning="deep"), ValueError, {}),
    (tools(reasoning="required", format="mistral_v7"), R, {}),
    (tools(whitespace="compact"), TypeError, {}),
    (tools(format="qwen"), F, {}),
    (tools(format=1), TypeError, {}),
]


@pytest.mark.parametrize("call, error, members", CASES, ids=range(len(CASES)))
def test_bad_input_is_named(engine, call, error, members):
    with pytest.raises(error) as caught:
        call(engine)
    value = caught.value
    assert {name: getattr(value, name) for name in members} == members
    if isinstance(value, louver.LouverError):
        assert str(value) and value.message
        copied = pickle.loads(pickle.dumps(value))
        assert (str(copied), copied.faults) == (str(value), value.faults)


def test_all_faults_are_listed(engine):
    schema = {"properties": {"a": {"type": "x"}, "b": {"minLength": -1}}}
    with pytest.raises(louver.SchemaError) as caught:
        engine.compile_json_schema(schema)
    pointers = [fault.pointer for fault in caught.value.faults]
    assert pointers == ["/properties/a/type", "/properties/b/minLength"]


def test_what_is_relaxed_is_reported(engine):
    schema = {"type": "string", "pattern": "^(?!c)[ab]*a[ab]{10}$"}
    small = louver.Engine(engine.vocabulary, limits={"automaton_states": 1000})
    with pytest.raises(louver.SchemaError) as caught:
        small.compile_json_schema(schema)
    assert caught.value.pointer == "/pattern"
    constraint = small.compile_json_schema(schema, policy="validate")
    [relaxed] = constraint.relaxed
    assert relaxed.pointer == "/pattern" and relaxed.keyword == "pattern" and relaxed.message
    assert constraint.matcher().allows(ord('"'))
    assert engine.compile_json_schema({"type": "string"}).relaxed == ()


def test_warnings_have_their_place(engine):
    constraint = engine.compile_ebnf('root ::= "a"\nspare ::= "b"\n')
    [warning] = constraint.warnings
    assert (warning.line, warning.column) == (2, 1) and "spare" in warning.message


def test_limits_are_errors(vocabulary):
    engine = louver.Engine(vocabulary, limits={"compile_fuel": 10})
    with pytest.raises((louver.LimitError, louver.SchemaError)):
        engine.compile_json_schema({"type": "string", "pattern": "(a|b){50}c"})
    with pytest.raises(TypeError, match="no option `speed`"):
        louver.Engine(vocabulary, limits={"speed": 1})
    deep = {}
    for _ in range(400):
        deep = {"items": deep}
    with pytest.raises(louver.LouverError):
        louver.Engine(vocabulary).compile_json_schema(deep)


@pytest.mark.parametrize("call", [
    lambda: louver.Vocabulary.from_json("{}"),
    lambda: louver.Vocabulary.from_json(""),
    lambda: louver.Vocabulary.from_file("no/such/tokenizer.json"),
    lambda: louver.Vocabulary.from_tokens([b"a"], stop_tokens=[]),
    lambda: louver.Vocabulary.from_tokens([b"a"], stop_tokens=[1]),
    lambda: louver.Vocabulary.from_tokens([b"a"], stop_tokens=[0], width=2**40),
    lambda: louver.Vocabulary.from_tokens([b"a"], stop_tokens=[0], special={"x": 0}),
    lambda: toys.vocabulary().encode("a"),
], ids=range(8))
def test_bad_vocabularies(call):
    with pytest.raises(louver.VocabularyError):
        call()


LONE = "a\ud800b"
VOCABULARY = toys.vocabulary()


def from_tokens(**options):
    return louver.Vocabulary.from_tokens([b"a"], **{"stop_tokens": [0], **options})


@pytest.mark.parametrize("name, call", [
    *((name, lambda engine, name=name: louver.Engine(VOCABULARY, **{name: -1}))
      for name in ("batch_threads", "background_threads", "pool_bytes", "grammar_cache_bytes")),
    ("batch_threads", lambda engine: louver.Engine(VOCABULARY, batch_threads=2**70)),
    ("schema", of("json_schema", {"const": LONE})),
    ("schema", of("json_schema", f'{{"const": "{LONE}"}}')),
    ("registry", of("json_schema", {}, registry={LONE: {}})),
    ("registry", of("json_schema", {}, registry={"urn:a": {"const": LONE}})),
    ("pattern", of("regex", LONE)),
    ("text", of("ebnf", LONE)),
    ("root", of("ebnf", 'root ::= "a"', root=LONE)),
    ("text", of("lark", LONE)),
    ("tag", of("structural_tag", LONE)),
    ("tag", of("structural_tag", {"type": LONE})),
    ("choices", of("choice", ["a", LONE])),
    ("tools", tools([{**TOOL, "name": LONE}])),
    ("format", tools(format=LONE)),
    ("bans", tools(bans=[LONE])),
    ("path", lambda engine: louver.Vocabulary.from_file(LONE)),
    ("width", lambda engine: louver.Vocabulary.from_file("a", width=-1)),
    ("text", lambda engine: louver.Vocabulary.from_json(LONE)),
    ("stop_tokens", lambda engine: louver.Vocabulary.from_json("{}", stop_tokens=[-1])),
    ("stop_tokens", lambda engine: louver.Vocabulary.from_json("{}", stop_tokens=[LONE])),
    ("width", lambda engine: from_tokens(width=-1)),
    ("stop_tokens", lambda engine: from_tokens(stop_tokens=[-1])),
    ("special", lambda engine: from_tokens(special={"x": -1})),
    ("special", lambda engine: from_tokens(special={LONE: 0})),
    ("token 1", lambda engine: louver.Vocabulary.from_tokens(["a", LONE], stop_tokens=[0])),
    ("text", lambda engine: VOCABULARY.encode(LONE)),
    ("n", lambda engine: engine.compile_regex("a*").matcher().rollback(-1)),
    ("row", lambda engine: engine.compile_regex("a*").matcher().fill_mask(
        louver.allocate_masks(2, VOCABULARY), -1)),
    *(("longest", lambda engine, call=call: getattr(engine.compile_regex("a*").matcher(), call)(-1))
      for call in ("forced_bytes", "forced_tokens", "shortest_completion_tokens")),
    ("id_seed", lambda engine: tools()(engine).extractor(id_seed=-1)),
    ("id_seed", lambda engine: tools()(engine).extract([], id_seed=2**64)),
    *((name, lambda engine, name=name, value=value: louver.formats.detect(**{name: value}))
      for name, value in (("chat_template", LONE), ("tokens", [LONE]), ("model_type", LONE),
                          ("architectures", [LONE]))),
    ("text", lambda engine: louver.formats.read(LONE, format="qwen3")),
], ids=str)
def test_arguments_are_named(engine, name, call):
    with pytest.raises(louver.ArgumentError) as caught:
        call(engine)
    assert str(caught.value).startswith(f"{name}: ")


def test_limits_out_of_range_are_named(vocabulary):
    for value in (-1, 2**70):
        with pytest.raises(ValueError, match="mask_fuel"):
            louver.Engine(vocabulary, limits={"mask_fuel": value})


@pytest.mark.parametrize("id", [-1, 2**32, 2**70, -2**70])
def test_numbers_that_are_no_ids_are_unknown_tokens(engine, id):
    matcher = engine.compile_regex("a*").matcher()
    assert not matcher.allows(id) and matcher.allowed_prefix([id]) == 0
    with pytest.raises(louver.AdvanceError) as caught:
        matcher.advance(id)
    assert caught.value.reason == "unknown_token"
    assert engine.vocabulary.bytes(id) is None


def test_every_error_is_one_of_ours():
    own = [value for value in vars(louver.errors).values()
           if isinstance(value, type) and issubclass(value, Exception)]
    assert len(own) >= 11 and all(issubclass(error, louver.LouverError) for error in own)


SEEDS = {
    "json_schema": '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, '
                   '"required": ["a"], "anyOf": [{"pattern": "^a+$"}, {"items": {}}]}',
    "regex": r"(?:[a-f\d]{2,4}|\w+(?=x))\.(é|日)*?$",
    "ebnf": 'root ::= item ("," item)* # note\nitem ::= [a-z]{1,3} | "x" root\n',
    "lark": 'start: item ("," item)*\nitem: /[a-z]+/ | "x"i start\n%ignore " "\n',
    "structural_tag": '{"type": "structural_tag", "format": {"type": "sequence", "elements": '
                      '[{"type": "const_string", "value": "a"}, {"type": "any_text"}]}}',
}


@pytest.mark.parametrize("kind", SEEDS)
def test_mutated_input_never_panics(engine, kind):
    """Only exceptions of ours: pytest would not catch PyO3's PanicException as one."""
    rng, seed, refused = toys.rng(5), SEEDS[kind], 0
    compile_text = getattr(engine, f"compile_{kind}")
    compile_text(seed)
    for _ in range(300):
        text = list(seed)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            edit = rng.randrange(3)
            if edit == 0:
                del text[at]
            elif edit == 1:
                text.insert(at, rng.choice("{}[]()\"'\\|*+?:,0\u0000é\n"))
            else:
                text[at] = rng.choice(seed)
        try:
            compile_text("".join(text)).matcher().mask()
        except louver.InternalError:
            raise
        except louver.LouverError:
            refused += 1
    assert refused > 20
