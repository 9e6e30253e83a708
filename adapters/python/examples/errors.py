"""What is wrong with a schema, a grammar, a request: all faults, each with its place."""

import louver

engine = louver.Engine(louver.toy_vocabulary())
try:
    engine.compile_json_schema({"properties": {"a": {"type": "text"}, "b": {"minLength": -1}}})
except louver.SchemaError as error:
    print(*error.faults, sep="\n")
    assert error.pointer == "/properties/a/type" and len(error.faults) == 2
try:
    engine.compile_ebnf("root ::= item\nitme ::= [a-z]+\n")
except louver.GrammarError as error:
    print(error)
    assert (error.line, error.column) == (1, 10) and "itme" in str(error)
try:
    engine.compile_tools([{"type": "function", "function": {"name": ""}}], format="qwen3")
except louver.RequestError as error:
    print(error)
    assert error.pointer == "/tools/0/function/name"
