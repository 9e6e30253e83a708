"""The type stubs and the documentation of the compiled module are complete."""

import ast
import inspect
import pathlib

import louver
import louver._louver as compiled
import pytest

STUBS = ast.parse((pathlib.Path(louver.__file__).parent / "_louver.pyi").read_text())
CLASSES = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUBS.body if isinstance(node, ast.FunctionDef)}


def test_every_name_has_a_stub():
    names = {name for name, value in vars(compiled).items()
             if name[0] != "_" and not inspect.ismodule(value)}
    assert names == {*CLASSES, *FUNCTIONS}
    assert (pathlib.Path(louver.__file__).parent / "py.typed").exists()
    assert set(louver.__all__) <= set(dir(louver))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_members_have_stubs_and_documentation(name):
    kind = getattr(compiled, name)
    stubbed = {node.name for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}
    stubbed |= {node.target.id for node in CLASSES[name].body if isinstance(node, ast.AnnAssign)}
    members = {member for member in vars(kind) if member[0] != "_"}
    assert members == {member for member in stubbed if member[0] != "_"}
    for member in members:
        if not isinstance(getattr(kind, member), kind):
            assert inspect.getdoc(getattr(kind, member)), f"{name}.{member}"
    assert inspect.getdoc(kind)


@pytest.mark.parametrize("name, member", [
    (name, node) for name, stub in CLASSES.items() for node in stub.body
    if isinstance(node, ast.FunctionDef) and node.name[0] != "_" and not node.decorator_list
], ids=lambda value: getattr(value, "name", value))
def test_signatures_agree(name, member):
    real = inspect.signature(getattr(getattr(compiled, name), member.name)).parameters
    takes_options = any(p.kind is p.VAR_KEYWORD for p in real.values())
    stubbed = [argument.arg for argument in [*member.args.args, *member.args.kwonlyargs]]
    named = [p.name for p in real.values() if p.kind is not p.VAR_KEYWORD]
    assert stubbed[: len(named)] == named if takes_options else stubbed == named
