"""One-line mutations of Python source, drawn at random and found again by function and line text."""

from __future__ import annotations

import ast
import copy
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("pages", "cache", "components", "engine")
SHARES = {"pages": 8, "cache": 10}
"""How many mutants are drawn from a package of few lines; the others share the rest by their lines."""
PER_FILE = 2

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
CRASHING = {"isinstance", "issubclass", "map", "partial", "getattr"}
"""Calls whose swapped arguments any test would notice."""
PATH = re.compile("path|folder|root|place|file|FILE|'", re.IGNORECASE)
LOOKS = {"width", "height", "size", "strokeWidth", "fontSize", "dx", "dy", "padding", "offset", "opacity"}
"""Keywords whose numbers only an eye could check."""
NO_VALUE = (ast.JoinedStr, ast.Raise, ast.Assert, ast.arguments, ast.pattern)
"""Nothing is mutated inside these: texts, the wording of errors, defaults, patterns."""


@dataclass(frozen=True)
class Mutant:
    """One change. `line` is the line's text without indentation; `nth` counts equal lines of the function."""

    id: int
    file: str
    function: str
    line: str
    nth: int
    column: int
    original: str
    replacement: str
    operator: str

    @property
    def is_statement(self) -> bool:
        return self.operator == "statement"

    def switched(self) -> str:
        """The line with the change in it, off until its switch is on."""
        if self.is_statement:
            return f"if not _mutant_active({self.id}): {self.line}"
        both = f"(({self.replacement}) if _mutant_active({self.id}) else ({self.original}))"
        return self.line[: self.column] + both + self.line[self.column + len(self.original) :]


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """(qualified name, node) of each function that is not inside another."""

    def inside(body: list[ast.stmt], path: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{path}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                yield path + node.name, node

    return inside(tree.body, "")


def find(mutant: Mutant, lines: list[str]) -> int | None:
    """The number of the mutant's line, from 1; none when the line is gone."""
    for name, node in functions(ast.parse("\n".join(lines))):
        if name == mutant.function:
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            equal = [number for number in span if lines[number - 1].strip() == mutant.line]
            if mutant.nth < len(equal):
                return equal[mutant.nth]
    return None


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """(operator, the node replaced, its replacement) for each change that can be made at a node."""
    match node:
        case ast.Compare(ops=[operation]) if type(operation) in COMPARISONS:
            name = "boundary" if isinstance(operation, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else "comparison"
            yield name, node, _with(node, ops=[COMPARISONS[type(operation)]()])
        case ast.BinOp(op=operation) if type(operation) in ARITHMETIC and not _is_text(node):
            yield "arithmetic", node, _with(node, op=ARITHMETIC[type(operation)]())
        case ast.BoolOp(op=ast.And()):
            yield "logic", node, _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "logic", node, _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", node, ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, repr(value + 1)
        case ast.Slice(lower=lower, upper=upper):
            for bound in (lower, upper):
                if bound is not None and not isinstance(bound, ast.Constant):
                    yield "slice", bound, f"{ast.unparse(bound)} + 1"
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield "condition", test, f"not ({ast.unparse(test)})"
        case ast.Return(value=ast.Compare() | ast.BoolOp() as value):
            yield "condition", value, f"not ({ast.unparse(value)})"
        case ast.Expr(value=ast.Call()):
            yield "statement", node, "pass"
        case ast.Call(func=ast.Name(id=name) as func) if name in CALLS:
            yield "call", func, CALLS[name]
        case ast.Call(args=[ast.Name() | ast.Attribute() as a, ast.Name() | ast.Attribute() as b, *rest]):
            if ast.unparse(a) != ast.unparse(b) and ast.unparse(node.func) not in CRASHING:
                yield "arguments", node, _with(node, args=[b, a, *rest])


def _with(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)


def _is_text(node: ast.BinOp) -> bool:
    """Whether texts, lists or paths are joined, where the other sign is an error in any test."""
    sides = (node.left, node.right)
    if isinstance(node.op, ast.Div) and PATH.search(ast.unparse(node)):
        return True
    return any(isinstance(s, ast.JoinedStr | ast.List | ast.Tuple) for s in sides) or any(
        isinstance(s, ast.Constant) and isinstance(s.value, str) for s in sides
    )


def values(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those that hold no value of the program: annotations, texts, decorators."""
    if isinstance(node, NO_VALUE):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            looks = isinstance(child, ast.keyword) and child.arg in LOOKS
            if isinstance(child, ast.AST) and not looks:
                yield from values(child)


def candidates(file: str, text: str) -> Iterator[Mutant]:
    """Every mutant of a file, none with a number yet."""
    lines = text.splitlines()
    for name, function in functions(ast.parse(text)):
        for statement in function.body:
            for node in values(statement):
                for operator, part, replacement in changes(node):
                    made = _mutant(file, name, function, lines, operator, part, replacement)
                    if made is not None:
                        yield made


def _mutant(
    file: str, name: str, function: ast.FunctionDef, lines: list[str], operator: str, part: ast.AST, replacement: str
) -> Mutant | None:
    if part.lineno != part.end_lineno or any(isinstance(n, ast.NamedExpr | ast.Yield) for n in ast.walk(part)):
        return None
    whole = lines[part.lineno - 1]
    line = whole.strip()
    indent = len(whole) - len(whole.lstrip())
    column, end = (len(whole.encode()[:at].decode()) - indent for at in (part.col_offset, part.end_col_offset))
    if operator == "statement" and line != line[column:end]:
        return None
    earlier = [n for n in range(function.lineno, part.lineno) if lines[n - 1].strip() == line]
    return Mutant(0, file, name, line, len(earlier), column, line[column:end], replacement, operator)


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """Each room gets its share by lines; files, operators and places are then drawn with equal chances."""
    chance = random.Random(seed)
    rooms: dict[str, dict[str, list[Mutant]]] = defaultdict(dict)
    lines: dict[str, int] = defaultdict(int)
    for file in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name, text = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
        parts = name.split("/")
        room = parts[0] if parts[0] in SHARES else "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        lines[room] += len(text.splitlines())
        if found := list(candidates(name, text)):
            rooms[room][name] = found
    rest = count - sum(SHARES.values())
    total = sum(n for room, n in lines.items() if room not in SHARES)
    drawn: list[Mutant] = []
    for room in sorted(rooms):
        wanted = SHARES.get(room) or max(3, round(rest * lines[room] / total))
        drawn += _draw_from(chance, [found for _, found in sorted(rooms[room].items())], wanted)
    numbered = enumerate(sorted(drawn, key=lambda m: (m.file, m.function, m.line, m.column)), start=1)
    return [Mutant(**{**vars(mutant), "id": number}) for number, mutant in numbered]


def _draw_from(chance: random.Random, files: list[list[Mutant]], wanted: int) -> list[Mutant]:
    pool = [found for found in files for _ in range(PER_FILE)]
    chance.shuffle(pool)
    drawn: list[Mutant] = []
    for found in pool:
        if len(drawn) == wanted:
            break
        free = [m for m in found if not any(m.line == other.line and m.file == other.file for other in drawn)]
        if free:
            operator = chance.choice(sorted({m.operator for m in free}))
            drawn.append(chance.choice([m for m in free if m.operator == operator]))
    return drawn
