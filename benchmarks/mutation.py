"""Changes a module in one small way: what a test of it ought to notice.

A comparison moved or turned round, a condition negated, `and` for `or`, a call, an argument or an assignment left out,
another value returned, an operator for its opposite. What says nothing about behaviour is left as it is:
annotations, the words of errors, asserts, imports.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change in one module.

    Attributes:
        module: its full name.
        path: its file, from the root.
        number: counts the changes of the module.
        line: where it begins.
        last_line: where what is changed ends.
        place: the function that it is in, `Class.function`.
        change: what was, and what is instead.
        root: of the tree that the module is in.
    """

    module: str
    path: str
    number: int
    line: int
    last_line: int
    place: str
    change: str
    root: Path = ROOT

    @property
    def file(self) -> str:
        """The whole path of the module's file."""
        return str(self.root / self.path)

    @property
    def key(self) -> str:
        """Names the mutant whatever stands above it in the file."""
        return f"{self.path}: {self.place}: {self.change}"


class _Mutator(ast.NodeTransformer):
    """Counts the possible changes of a module, and makes the one of a number.

    Attributes:
        found: every possible change, as (line, last line, place, change).

    Args:
        wanted: number of the change to make; -1 for none.
    """

    def __init__(self, wanted: int = -1) -> None:
        self.found: list[tuple[int, int, str, str]] = []
        self._wanted = wanted
        self._place: list[str] = []

    def _makes(self, old: ast.AST, shown: str) -> bool:
        line = getattr(old, "lineno", 0)
        last = getattr(old, "end_lineno", None) or line
        self.found.append((line, last, ".".join(self._place), shown))
        return len(self.found) - 1 == self._wanted

    def _changed(self, old: ast.AST, new: ast.AST) -> bool:
        return self._makes(old, f"{ast.unparse(old)} → {ast.unparse(new)}")

    def visit(self, node: ast.AST) -> Any:
        """Leaves out what says nothing about behaviour: annotations, words of errors, asserts."""
        if isinstance(node, ast.Assert | ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
            return node
        return super().visit(node)

    def _inside(self, node: Any) -> Any:
        self._place.append(node.name)
        if isinstance(node, ast.ClassDef):
            node.body = [self.visit(each) for each in node.body]
        else:
            node.args.defaults = [self.visit(each) for each in node.args.defaults]
            node.body = [self.visit(each) for each in node.body]
        self._place.pop()
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside  # noqa: N815  # ast's

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # ast's
        """Changes what is assigned, not its annotation."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:  # ast's
        """Moves a bound, or turns the comparison round."""
        for index, operator in enumerate(node.ops):
            other = _COMPARISONS[type(operator)]()
            operators = [*node.ops[:index], other, *node.ops[index + 1 :]]
            if self._changed(node, ast.Compare(node.left, operators, node.comparators)):
                node.ops = operators
                return node
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # ast's
        """Takes `and` for `or`."""
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        if self._changed(node, ast.BoolOp(other, node.values)):
            node.op = other
            return node
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:  # ast's
        """Leaves a `not` out."""
        if isinstance(node.op, ast.Not) and self._changed(node, node.operand):
            return node.operand
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # ast's
        """Takes an operator's opposite."""
        opposite = _OPERATORS.get(type(node.op))
        if opposite is not None and self._changed(
            node, ast.BinOp(node.left, opposite(), node.right)
        ):
            node.op = opposite()
            return node
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # ast's
        """Leaves out an argument without which the call still means something.

        That is one by its name, which may have a default, or one of several that are compared.
        """
        compared = isinstance(node.func, ast.Name) and node.func.id in {"max", "min"}
        if compared and len(node.args) > 1:
            for index in range(len(node.args)):
                fewer = [*node.args[:index], *node.args[index + 1 :]]
                if len(fewer) == 1:
                    # `min` of one argument goes through what is in it.
                    if self._changed(node, fewer[0]):
                        return fewer[0]
                elif self._changed(node, ast.Call(node.func, fewer, node.keywords)):
                    node.args = fewer
                    return node
        for index, keyword in enumerate(node.keywords):
            left = [*node.keywords[:index], *node.keywords[index + 1 :]]
            # Without a name it is no one argument, and `zip`'s `strict` is an assert.
            if keyword.arg not in {None, "strict"} and self._changed(
                node, ast.Call(node.func, node.args, left)
            ):
                node.keywords = left
                return node
        return self.generic_visit(node)

    def _negate(self, node: Any) -> Any:
        negated = ast.UnaryOp(ast.Not(), node.test)
        if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp) and self._changed(
            node.test, negated
        ):
            node.test = ast.copy_location(negated, node.test)
            return node
        return self.generic_visit(node)

    visit_If = visit_IfExp = visit_While = _negate  # noqa: N815  # ast's

    def visit_Expr(self, node: ast.Expr) -> ast.AST:  # ast's
        """Leaves a call out."""
        if isinstance(node.value, ast.Constant):
            return node
        if isinstance(node.value, ast.Call) and self._makes(node, f"{ast.unparse(node)} → pass"):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def _leave_out(self, node: Any) -> Any:
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        kept = all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        # What is assigned in a class or a module, or to a name, would be missed at once.
        if (kept or isinstance(node, ast.AugAssign)) and self._makes(
            node, f"{ast.unparse(node)} → pass"
        ):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    visit_Assign = visit_AugAssign = visit_Delete = _leave_out  # noqa: N815  # ast's

    def visit_Return(self, node: ast.Return) -> ast.AST:  # ast's
        """Returns something else."""
        value = node.value
        if value is None and self._makes(node, "return → pass"):
            return ast.copy_location(ast.Pass(), node)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return node
        truth = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        other = ast.Constant(not value.value if truth else None)  # type: ignore[attr-defined]  # a constant
        if self._changed(node, ast.Return(other)):
            node.value = other
            return node
        return self.generic_visit(node)

    def _go_on(self, node: Any) -> Any:
        if self._makes(node, f"{ast.unparse(node)} → pass"):
            return ast.copy_location(ast.Pass(), node)
        return node

    visit_Continue = visit_Break = _go_on  # noqa: N815  # ast's


def mutants_of(module: str, root: Path = ROOT) -> list[Mutant]:
    """Returns every mutant of a module, by its full name, in the tree of a root."""
    path = f"{module.replace('.', '/')}.py"
    mutator = _Mutator()
    mutator.visit(ast.parse((root / path).read_text(encoding="utf-8")))
    return [
        Mutant(module, path, number, line, last, place, change, root)
        for number, (line, last, place, change) in enumerate(mutator.found)
    ]


def mutated(source: str, number: int) -> ast.Module:
    """Returns a module's tree with the change of a number."""
    tree: ast.Module = _Mutator(number).visit(ast.parse(source))
    return ast.fix_missing_locations(tree)


def functions_of(code: CodeType) -> list[CodeType]:
    """Returns the outermost functions of a module's code, methods among them, in order."""
    found: list[CodeType] = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            # The body of a class is no function: its names are not optimised.
            inside = const.co_flags & inspect.CO_OPTIMIZED
            found += [const] if inside else functions_of(const)
    return found


@cache
def parts_of(file: str) -> tuple[str, list[CodeType]]:
    """Returns the source and the outermost functions of a module, by its whole path."""
    source = Path(file).read_text(encoding="utf-8")
    return source, functions_of(compile(source, file, "exec", dont_inherit=True))


def changed_functions(mutant: Mutant) -> list[tuple[CodeType, CodeType]]:
    """Returns the functions that differ in a mutant, as they are and as they are in it.

    There are none where the change is outside functions, in what is done once when the module is imported.
    """
    source, before = parts_of(mutant.file)
    tree = mutated(source, mutant.number)
    after = functions_of(compile(tree, mutant.file, "exec", dont_inherit=True))
    named: dict[tuple[str, int], list[CodeType]] = {}
    for code in after:
        named.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    pairs = [(old, named[old.co_qualname, old.co_firstlineno].pop(0)) for old in before]
    return [(old, new) for old, new in pairs if old != new]


class _Loader(importlib.machinery.SourceFileLoader):
    # Loads a module with one change.

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, mutant.file)
        self._number = mutant.number

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  # the import system's
        source = self.get_source(self.name) or ""
        code: CodeType = compile(mutated(source, self._number), self.path, "exec")
        return code


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module where its mutant is; for `sys.meta_path`."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the mutant, for the module that it is of."""
        del path, target
        if fullname != self._mutant.module:
            return None
        loader = _Loader(self._mutant)
        return importlib.util.spec_from_loader(fullname, loader)
