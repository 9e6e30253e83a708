"""Which tools may be called, and how often."""

import louver

engine = louver.Engine(louver.toy_vocabulary())
tools = [{"type": "function", "function": {"name": name}} for name in ("look", "move", "wait")]


def allowed(text, **options):
    matcher = engine.compile_tools(tools, format="mistral_v7", **options).matcher()
    return matcher.allowed_prefix(text) == len(text)


call = b'[TOOL_CALLS][{"name": "move", "arguments": {}}'
assert allowed(call) and allowed(call, tool_choice="required")
assert allowed(b"Hello", tool_choice="none") and not allowed(b"Hello", tool_choice="required")
named = {"type": "function", "function": {"name": "look"}}
assert not allowed(call, tool_choice=named) and not allowed(call, allowed=["look", "wait"])
assert allowed(call + b", ", parallel=2) and not allowed(call + b", ", parallel=False)
