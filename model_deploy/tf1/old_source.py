"""Compiles the source of an old program, with what it means spelled out where Python differs."""

import ast
import builtins
import types
from typing import Any

from model_deploy.tf1.dropped import METHODS, call_method

_CONVERTED = "__model_deploy_converted__"
_CALL_METHOD = "__model_deploy_call_method__"


def compiled(source: str, path: str) -> types.CodeType:
    """Code of a module that may do what Python and NumPy have dropped; lines stay what they are.

    `int(x)` and `float(x)` also take arrays of one number: NumPy 1 converted such arrays, NumPy 2
    does so for those without dimensions only.  Methods that are gone, such as `x.tostring()`, are
    called as `dropped.call_method` does.  The code finds both functions by `BUILTINS`.

    Args:
      source: the text of the module.
      path: its file, for messages.

    Raises:
      SyntaxError: if it is no Python 3.
    """
    tree = _Calls().visit(ast.parse(source, path))
    code: types.CodeType = builtins.compile(
        ast.fix_missing_locations(tree), path, "exec", dont_inherit=True
    )
    return code


def converted(kind: Any, value: Any) -> Any:
    """`kind(value)`, where `kind` is what the module calls `int` or `float`."""
    if kind in (int, float) and getattr(value, "shape", None) and getattr(value, "size", 0) == 1:
        value = value.item()
    return kind(value)


# What the code of `compiled` needs in its `__builtins__`.
BUILTINS = {_CONVERTED: converted, _CALL_METHOD: call_method}


class _Calls(ast.NodeTransformer):
    """Replaces `int(x)` by `converted(int, x)`, and `x.gone()` by `call_method(x, "gone")`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("int" | "float") as kind, [value], []) if not isinstance(
                value, ast.Starred
            ):
                return _call(node, _CONVERTED, [kind, value])
            case ast.Call(ast.Attribute(owner, name), arguments, _) if name in METHODS:
                constant = ast.copy_location(ast.Constant(name), node.func)
                return _call(node, _CALL_METHOD, [owner, constant, *arguments], node.keywords)
        return node


def _call(
    node: ast.Call, name: str, arguments: list[ast.expr], keywords: list[ast.keyword] | None = None
) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), node.func)
    return ast.copy_location(ast.Call(function, arguments, keywords or []), node)
