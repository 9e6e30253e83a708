"""The wire format of a model, from its chat template."""

import louver

template = """{%- for call in message.tool_calls %}{{- '<tool_call>\\n{"name": "' }}{%- endfor %}
{{- '</think>' }}"""
name, reason = louver.formats.detect(template)
print(name, "because", reason)
assert name == "qwen3" and name in dict(louver.formats.families())
