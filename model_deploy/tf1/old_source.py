"""Compiles the source of an old program, with what it means spelled out where Python differs."""

import ast
import builtins
import types
from typing import Any

# The name under which a module finds `converted`.
CONVERTED = "__model_deploy_converted__"


def compiled(source: str, path: str) -> types.CodeType:
    """Code of a module in which `int(x)` and `float(x)` also take arrays of one number.

    NumPy 1 converted such arrays; NumPy 2 does so for those without dimensions only.  Lines stay
    what they are.

    Args:
      source: the text of the module.
      path: its file, for messages.

    Raises:
      SyntaxError: if it is no Python 3.
    """
    tree = _Conversions().visit(ast.parse(source, path))
    code: types.CodeType = builtins.compile(
        ast.fix_missing_locations(tree), path, "exec", dont_inherit=True
    )
    return code


def converted(kind: Any, value: Any) -> Any:
    """`kind(value)`, where `kind` is what the module calls `int` or `float`."""
    if kind in (int, float) and getattr(value, "shape", None) and getattr(value, "size", 0) == 1:
        value = value.item()
    return kind(value)


class _Conversions(ast.NodeTransformer):
    """Replaces `int(x)` by `converted(int, x)`, and `float(x)` likewise."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("int" | "float") as kind, [value], []) if not isinstance(
                value, ast.Starred
            ):
                function = ast.copy_location(ast.Name(CONVERTED, ast.Load()), node.func)
                return ast.copy_location(ast.Call(function, [kind, value], []), node)
        return node
