"""Functions of the syntax tree to the form that is interpreted (ir.py).

Macros are expanded, with every node of an expansion standing at the outermost use; template parameters are bound to
types and numbers; names become slots. What is not understood becomes Opaque, and its parts are still followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from types import MappingProxyType

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.constants import fold, substitute
from warpwright.facts.declarations import Scope
from warpwright.facts.expressions import EXPRESSIONS, ExpressionReader
from warpwright.facts.launch_calls import arguments_behind
from warpwright.facts.merging import is_straight
from warpwright.facts.predication import mark_last
from warpwright.facts.qualified import Origin
from warpwright.facts.steps import NODE, OutOfStepsError
from warpwright.facts.types import (
    INT,
    UNKNOWN_TYPE,
    CType,
    array_of,
    pointer_to,
)
from warpwright.facts.unit import CONDITIONALS, FunctionText, define, live_branch, live_children
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import descendants, enclosing, function_declarator, parameters_of, uncommented
from warpwright.syntax.readable import ends_statement, terminated
from warpwright.syntax.source import Source, Span


class Lowerer(ExpressionReader):
    """Reads one function. `grafts` are statements that stand for nodes of a macro's replacement, by the nodes' ids."""

    grafts: Mapping[int, Callable[[], ir.Stmt]] = MappingProxyType({})

    def function(self, text: FunctionText, this: CType | None = None, owner: CType | None = None) -> ir.Function:
        """`this` is the type of a member function's object, `owner` the struct whose text the function stands in.
        Raises OutOfStepsError where the text takes too many: a part of it would do something else."""
        if text.owner:
            kind = owner or this or self.named_type(text.owner)
            if isinstance(kind.origin, Origin):
                self.around = [kind.origin]
            self.this = this or kind
        for name, is_type, default in text.template:
            if name in self.bindings:
                continue
            if default is not None:
                bound = self.type_of_text(default) if is_type else self.constant_of_text(default)
                if bound is not None:
                    self.bindings[name] = bound
            if is_type and name not in self.bindings:
                self.bindings[name] = self._open_type(name, text)
            elif name not in self.bindings:
                self.scopes[-1].names[name] = _open_number
        declarator = function_declarator(text.node)
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        returns, reference = self._returned(text)
        body = text.node.child_by_field_name("body")
        static = any(self.source.node_code(c) == "static" for c in text.node.children)
        if self.this is None or static:
            self.this = None
            made = self.function_body(text.name, parameters, body, returns)
        else:
            slot = self.declare("this", self.this)
            members = next((c for c in text.node.named_children if c.type == "field_initializer_list"), None)
            made = self.function_body(text.name, parameters, body, returns, members)
            made.parameters.insert(0, ir.FunctionParameter(slot, "this", self.this, reference=True))
        made.reference = reference
        if self.unit.steps.spent:
            raise OutOfStepsError
        return made

    def _open_type(self, name: str, text: FunctionText) -> CType:
        """A type that the text does not give, taken as 4 bytes: an integer where an operator of integers alone takes a
        parameter of it, as in `template <class T, class I> __global__ void k(T *p, I n) { p[blockIdx.x % n] = 0; }`."""
        body = text.node.child_by_field_name("body")
        code = self.source.node_code(body) if body is not None else ""
        for parameter in parameters_of(text.node):
            kind, label = (parameter.child_by_field_name(part) for part in ("type", "declarator"))
            if kind is None or label is None or label.type != "identifier" or self.source.node_code(kind) != name:
                continue
            if re.search(rf"%\s*{re.escape(self.source.node_code(label))}\b", code):
                return CType(name, 4, 4, "int", assumed=True)
        return CType(name, 4, 4, "float", assumed=True)

    def _returned(self, text: FunctionText) -> tuple[CType, bool]:
        """What a function returns, and whether by reference; the `*` and `&` stand around its declarator."""
        node = text.node.child_by_field_name("declarator")
        kind = text.node.child_by_field_name("type")
        if kind is None and node is not None and node.type == "operator_cast":
            kind = next((c for c in node.named_children if c.type != "type_qualifier"), None)
            node = next((c for c in node.named_children if c.type.startswith("abstract_")), None)
        returns, reference = self.type_of(kind), False
        while node is not None and node.type not in ("function_declarator", "abstract_function_declarator"):
            if node.type in ("pointer_declarator", "abstract_pointer_declarator"):
                returns = pointer_to(returns)
            reference = reference or node.type in ("reference_declarator", "abstract_reference_declarator")
            node = next((c for c in node.named_children if c.type.endswith("declarator")), None)
        return returns, reference

    def function_body(
        self, name: str, parameters: Node | None, body: Node | None, returns: CType, members: Node | None = None
    ) -> ir.Function:
        self.scopes.append(Scope({}))
        lowered: list[ir.FunctionParameter] = []
        for node in live_children(self.unit, self.source, parameters) if parameters is not None else []:
            if node.type in ("parameter_declaration", "optional_parameter_declaration"):
                base = self.type_of(node.child_by_field_name("type"))
                kind, label, reference = self.declared(base, node.child_by_field_name("declarator"))
                if kind.kind == "array":
                    kind = pointer_to(kind.to or UNKNOWN_TYPE)
                value = node.child_by_field_name("default_value")
                default = self.expression(value) if value is not None else None
                slot = self.declare(label or "", kind)
                lowered.append(ir.FunctionParameter(slot, label or "", kind, reference, default))
        statement: ir.Stmt = ir.Block(self.span(body) if body is not None else Span(self.source, 0, 0), [])
        if body is not None:
            statement = self.statement(body)
        if members is not None:
            statement = ir.Block(statement.span, [*map(self._initializer, members.named_children), statement])
        self.scopes.pop()
        mark_last(statement)
        return ir.Function(name, lowered, statement, len(self.slot_types), returns, self.incomplete)

    def _initializer(self, node: Node) -> ir.Stmt:
        """`x(a)` of a constructor as the assignment `this->x = a`."""
        span = self.span(node)
        label, value = (*uncommented(node), None, None)[:2]
        values = [self.expression(child) for child in uncommented(value)]
        member = ir.Member(
            span, self.name("this", span), self.source.node_code(label) if label is not None else "", False
        )
        if len(values) != 1 or self.this is None or self.this.member(member.field) is None:
            return ir.Evaluate(span, ir.Opaque(span, values))
        return ir.Evaluate(span, ir.Assign(span, "", member, values[0]))

    def statement(self, node: Node | None) -> ir.Stmt:
        if node is None:
            return ir.Block(self.at or Span(self.source, 0, 0), [])
        if not self.unit.steps.take(NODE):
            return ir.Block(self.span(node), [])
        if node.id in self.grafts:
            return self.grafts[node.id]()
        handler = _STATEMENTS.get(node.type)
        if handler is not None and self.depth <= 300:
            self.depth += 1
            try:
                return handler(self, node)
            finally:
                self.depth -= 1
        if node.type in EXPRESSIONS:
            return ir.Evaluate(self.span(node), self.expression(node))
        if node.type == "ERROR":
            self.incomplete.append(f"line {self.span(node).line} could not be read")
            return self._block(node)
        return ir.Block(self.span(node), [])

    def _block(self, node: Node) -> ir.Stmt:
        self.scopes.append(Scope({}))
        body = [self.statement(child) for child in self._live(node)]
        self.scopes.pop()
        return _joined(self.span(node), body)

    def _live(self, node: Node) -> list[Node]:
        """Live statements; a #define among them counts from here on."""
        out: list[Node] = []
        bodies = self._bodies_behind_directives(node)
        for child in live_children(self.unit, self.source, node):
            if child.type in ("preproc_def", "preproc_function_def"):
                define(self.unit, self.source, child)
            elif child.type != "comment" and child.id not in bodies:
                out.append(child)
        return out

    def _bodies_behind_directives(self, node: Node) -> set[int]:
        """The statements that an #if puts between a loop's head and the next statement are the loop's body."""
        found: set[int] = set()
        for head, directive in pairwise(node.named_children):
            body = head.child_by_field_name("body") or head.child_by_field_name("consequence")
            if directive.type not in CONDITIONALS or body is None or not any(c.is_missing for c in body.children):
                continue
            statement = next((c for c in live_branch(self.unit, self.source, directive) if c.type != "comment"), None)
            if statement is not None:
                found.add(statement.id)
                self.grafts = {**self.grafts, body.id: partial(self._scoped, statement)}
        return found

    def _expression_statement(self, node: Node) -> ir.Stmt:
        inner = next(iter(uncommented(node)), None)
        if inner is None:
            return ir.Block(self.span(node), [])
        if inner.type in ("call_expression", "identifier", "type_identifier"):
            statement = self._statement_macro(inner)
            if statement is not None:
                return statement
        if inner.type == "binary_expression":
            declaration = self._declared_between_brackets(inner)
            if declaration is not None:
                return declaration
        if inner.type == "assignment_expression":
            declaration = self._row_pointer(inner)
            if declaration is not None:
                return declaration
        return ir.Evaluate(self.span(node), self.expression(inner))

    def _lone_name(self, node: Node) -> ir.Stmt:
        return self._statement_macro(node) or ir.Block(self.span(node), [])

    def _declared_between_brackets(self, node: Node) -> ir.Stmt | None:
        """`cg::thread_block_tile<32> tile = f(block);`, which the grammar takes for `(a < 32) > (b = c)`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if (
            left is None
            or right is None
            or operator is None
            or operator.type != ">"
            or left.type != "binary_expression"
        ):
            return None
        head, inner = left.child_by_field_name("left"), left.child_by_field_name("operator")
        if inner is None or inner.type != "<" or head is None or not head.type.endswith("identifier"):
            return None
        assigned = right.type == "assignment_expression"
        name = right.child_by_field_name("left") if assigned else right
        if name is None or name.type != "identifier":
            return None
        kind = self.named_type(self.source.code_text(head.start_byte, operator.end_byte))
        value = self.expression(right.child_by_field_name("right")) if assigned else None
        label = self.source.node_code(name)
        return ir.Declare(self.span(node), self.declare(label, kind), label, kind, value, False)

    def _row_pointer(self, node: Node) -> ir.Stmt | None:
        """`float (*rows)[32] = tile;`, which the grammar takes for an assignment to `float(*rows)[32]`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        extents: list[Node] = []
        while left is not None and left.type == "subscript_expression":
            extents += uncommented(left.child_by_field_name("indices"))[:1]
            left = left.child_by_field_name("argument")
        if not extents or left is None or left.type != "call_expression" or right is None:
            return None
        function = left.child_by_field_name("function")
        pointers = uncommented(left.child_by_field_name("arguments"))
        if (
            function is None
            or function.type != "primitive_type"
            or [p.type for p in pointers] != ["pointer_expression"]
        ):
            return None
        name = pointers[0].child_by_field_name("argument")
        if name is None or name.type != "identifier":
            return None
        row = self.type_of(function)
        for extent in extents:
            row = array_of(row, self.constant(extent))
        value, label, kind = self.expression(right), self.source.node_code(name), pointer_to(row)
        return ir.Declare(self.span(node), self.declare(label, kind), label, kind, value, False)

    def _statement_macro(self, use: Node) -> ir.Stmt | None:
        """A macro as the statements that it stands for."""
        called = use.type == "call_expression"
        name = self.source.node_code((use.child_by_field_name("function") if called else use) or use)
        macro = self.unit.macros.get(name)
        if macro is None or (macro.parameters is not None) != called or name in self.expanding:
            return None
        if not called and self.lookup(name) is not None:
            return None
        if not self.may_expand():
            return None
        arguments = [self.source.plain_text(a) for a in uncommented(use.child_by_field_name("arguments"))]
        used = [encoded(m.name) for m in self.unit.macros.values() if ends_statement(encoded(m.body))]
        text = decoded(terminated(encoded(f"{substitute(macro, arguments)} ;"), used))
        fragment = self.fragment(f"void __warpwright() {{ {text} }}", "compound_statement")
        if fragment is None:
            return None
        source, body = fragment
        self.expanding.add(name)
        try:
            return self.within(source, lambda: self._open_block(body), self.span(use))
        finally:
            self.expanding.discard(name)

    def _open_block(self, node: Node) -> ir.Stmt:
        """A block whose declarations stay visible after it, as those of a macro do."""
        return _joined(self.span(node), [self.statement(child) for child in self._live(node)])

    def _declaration(self, node: Node) -> ir.Stmt:
        span = self.span(node)
        type_node = node.child_by_field_name("type")
        if type_node is not None and type_node.type in ("struct_specifier", "union_specifier", "class_specifier"):
            label = type_node.child_by_field_name("name")
            if label is not None and type_node.child_by_field_name("body") is not None:
                self.scopes[-1].names[self.source.node_code(label)] = self.type_of(type_node)
        base = self.type_of(type_node)
        head = self.source.code_text(node.start_byte, node.end_byte).split("=")[0]
        declarators = node.children_by_field_name("declarator")
        shared = "__shared__" in head
        static = re.search(r"\b(static|__constant__)\b", head) is not None
        extern = shared and "extern" in head.split("__shared__")[0] + head.split("__shared__")[1][:20]
        out: list[ir.Stmt] = []
        for declarator in declarators:
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            if inner is not None and inner.type == "function_declarator" and not _is_pointer_to_function(inner):
                made = self._constructed(base, inner, re.search(r"\b(const|constexpr)\b", head) is not None)
                if made is not None:
                    out.append(made)
                continue
            if inner is not None and value is not None and any(descendants(inner, "structured_binding_declarator")):
                out += self._bound_names(inner, value)
                continue
            kind, name, reference = self.declared(base, inner)
            if name is None:
                continue
            place = self.span(declarator)
            if shared:
                variable = self._shared(name, kind, extern, place)
                slot = self.declare(name, kind)
                out.append(ir.Declare(place, slot, name, kind, None, False, variable))
                continue
            listed = value is not None and (
                value.type == "argument_list" or (value.type == "initializer_list" and kind.kind == "struct")
            )
            init = self.expression(value) if value is not None and not listed else None
            if value is not None and listed:
                init = ir.Construct(self.span(value), kind, [self.expression(a) for a in uncommented(value)])
                if kind.kind != "struct" and len(init.arguments) == 1:
                    init = init.arguments[0]
            if kind.kind == "array" and kind.extent is None and isinstance(init, ir.Construct):
                kind = array_of(kind.to or UNKNOWN_TYPE, len(init.arguments))
            slot = self.declare(name, kind)
            folded = fold(init) if init is not None else None
            if folded is not None and kind.is_integer and re.search(r"\b(const|constexpr)\b", head):
                self.scopes[-1].names[name] = _constant_name(folded, kind)
            out.append(ir.Declare(place, slot, name, kind, init, reference, static=static))
        return out[0] if len(out) == 1 else ir.Block(span, out)

    def _bound_names(self, declarator: Node, value: Node) -> list[ir.Stmt]:
        """`auto [a, b] = pair;` as a variable without a name and references to its members (C++ standard,
        [dcl.struct.bind])."""
        span, kind = self.span(declarator), CType("auto", None)
        whole = self.declare("", kind)
        reference = declarator.type == "reference_declarator"
        out: list[ir.Stmt] = [ir.Declare(span, whole, "", kind, self.expression(value), reference)]
        names = next(descendants(declarator, "structured_binding_declarator"))
        for number, name in enumerate(uncommented(names)):
            place, label = self.span(name), self.source.node_code(name)
            piece = ir.Piece(place, ir.Var(place, whole, ""), number)
            out.append(ir.Declare(place, self.declare(label, kind), label, kind, piece, True))
        return out

    def _constructed(self, kind: CType, node: Node, const: bool) -> ir.Stmt | None:
        """`View v(p);` and `int n(A * B);`, which read as functions' declarations until one knows that p, A and B are
        values."""
        label, listed = node.child_by_field_name("declarator"), node.child_by_field_name("parameters")
        given = uncommented(listed) if listed is not None else []
        names = [self.source.plain_text(parameter) for parameter in given]
        if label is None or label.type != "identifier" or not names:
            return None
        if not all(self.is_value(word) for name in names for word in re.findall(r"[A-Za-z_]\w*", name)):
            return None
        read = [self.expression_of_text(name, self.span(p)) for name, p in zip(names, given, strict=True)]
        name, place = self.source.node_code(label), self.span(node)
        init: ir.Expr = ir.Construct(place, kind, [argument for argument in read if argument is not None])
        slot, folded = self.declare(name, kind), fold(read[0]) if kind.is_integer and const else None
        if folded is not None:
            self.scopes[-1].names[name] = _constant_name(folded, kind)
            init = ir.Const(place, folded, kind)
        return ir.Declare(place, slot, name, kind, init, False)

    def _shared(self, name: str, kind: CType, dynamic: bool, span: Span) -> ir.SharedVariable:
        dims: list[int | None] = []
        element = kind
        while element.kind == "array":
            dims.append(element.extent)
            element = element.to or UNKNOWN_TYPE
        return ir.SharedVariable(name, kind, dynamic, span, tuple(dims), element)

    def _headed(self, node: Node) -> ir.Stmt | None:
        """The loop or condition that a macro is the head of, `KERNEL_LOOP(i, n) { ... }`, which reads as an `if`."""
        written = re.compile(rb"(\w+)\s*(\(?)").match(self.source.code, node.start_byte)
        macro = self.unit.macros.get(decoded(written[1])) if written is not None else None
        if written is None or macro is None or macro.name in self.expanding or not self.may_expand():
            return None
        given = (
            arguments_behind(self.source.data, written.end()) if macro.parameters is not None else ((), written.end(1))
        )
        if given is None:
            return None
        alternative = node.child_by_field_name("alternative")
        text = f"{substitute(macro, list(given[0]))} ; {'else ;' if alternative is not None else ''}"
        fragment = self.fragment(f"void __warpwright() {{ {text} }}", "compound_statement")
        if fragment is None:
            return None
        source, at, grafts = self.source, self.at, self.grafts
        for empty in descendants(fragment[1], "expression_statement"):
            if not empty.named_children:
                other = empty.parent is not None and empty.parent.type == "else_clause"
                body = alternative if other else node.child_by_field_name("consequence")
                self.grafts = {**self.grafts, empty.id: partial(self._graft, body, source, at, macro.name)}
        self.expanding.add(macro.name)
        try:
            head = Span(self.source, node.start_byte, given[1])
            return self.within(fragment[0], lambda: self._open_block(fragment[1]), head)
        finally:
            self.expanding.discard(macro.name)
            self.grafts = grafts

    def _graft(self, node: Node | None, source: Source, at: Span | None, macro: str) -> ir.Stmt:
        """A statement of the text under a head that a macro stands for."""
        outer, self.at = self.at, at
        self.expanding.discard(macro)
        try:
            return self.within(source, lambda: self._scoped(node))
        finally:
            self.at = outer
            self.expanding.add(macro)

    def _if(self, node: Node) -> ir.Stmt:
        if not self.source.code.startswith(b"if", node.start_byte):
            headed = self._headed(node)
            if headed is not None:
                return headed
        condition = self.expression(node.child_by_field_name("condition"))
        constant = (
            fold(condition) if "constexpr" in self.source.code_text(node.start_byte, node.start_byte + 14) else None
        )
        alternative = node.child_by_field_name("alternative")
        if constant is not None:
            if constant:
                return self.statement(node.child_by_field_name("consequence"))
            return self.statement(alternative)
        then = self._scoped(node.child_by_field_name("consequence"))
        otherwise = self._scoped(alternative) if alternative is not None else None
        return ir.If(self.span(node), condition, then, otherwise)

    def _scoped(self, node: Node | None) -> ir.Stmt:
        self.scopes.append(Scope({}))
        out = self.statement(node)
        self.scopes.pop()
        return out

    def _else(self, node: Node) -> ir.Stmt:
        inner = next(iter(uncommented(node)), None)
        return self.statement(inner)

    def _for(self, node: Node) -> ir.Stmt:
        self.scopes.append(Scope({}))
        initializer = node.child_by_field_name("initializer")
        init = self.statement(initializer) if initializer is not None else None
        condition_node = node.child_by_field_name("condition")
        condition = self.expression(condition_node) if condition_node is not None else None
        step_node = node.child_by_field_name("update")
        step = self.expression(step_node) if step_node is not None else None
        body = self.statement(node.child_by_field_name("body"))
        self.scopes.pop()
        return ir.Loop(self.span(node), "for", init, condition, step, body, is_straight(body))

    def _range_for(self, node: Node) -> ir.Stmt:
        """Over an array as a loop that counts; over another range once, for an element that is not known."""
        self.scopes.append(Scope({}))
        base = self.type_of(node.child_by_field_name("type"))
        kind, name, reference = self.declared(base, node.child_by_field_name("declarator"))
        place, over = self.span(node), self.expression(node.child_by_field_name("right"))
        whole, counter = self._static_type(over), self.declare("", INT)
        element: ir.Expr = ir.Opaque(place, [over])
        if whole.kind == "array" and whole.extent:
            element = ir.Index(self.span(node), over, ir.Var(place, counter, ""))
        slot = self.declare(name or "", kind)
        first = ir.Declare(place, slot, name or "", kind, element, reference and isinstance(element, ir.Index))
        body = ir.Block(place, [first, self.statement(node.child_by_field_name("body"))])
        self.scopes.pop()
        if not isinstance(element, ir.Index):
            return body
        count = ir.Var(place, counter, "")
        start = ir.Declare(place, counter, "", INT, ir.Const(place, 0, INT), False)
        goes_on = ir.Binary(place, "<", count, ir.Const(place, whole.extent, INT))
        return ir.Loop(place, "for", start, goes_on, ir.Update(place, "+", count, True), body, is_straight(body))

    def _while(self, node: Node) -> ir.Stmt:
        condition = self.expression(node.child_by_field_name("condition"))
        body = self._scoped(node.child_by_field_name("body"))
        return ir.Loop(self.span(node), "while", None, condition, None, body, is_straight(body))

    def _do(self, node: Node) -> ir.Stmt:
        body = self._scoped(node.child_by_field_name("body"))
        condition = self.expression(node.child_by_field_name("condition"))
        return ir.Loop(self.span(node), "do", None, condition, None, body, is_straight(body))

    def _switch(self, node: Node) -> ir.Stmt:
        value = self.expression(node.child_by_field_name("condition"))
        cases: list[tuple[ir.Expr | None, list[ir.Stmt]]] = []
        body = node.child_by_field_name("body")
        self.scopes.append(Scope({}))
        for child in self._live(body) if body is not None else []:
            if child.type == "case_statement":
                label = child.child_by_field_name("value")
                statements = [self.statement(c) for c in self._live(child) if c != label]
                cases.append((self.expression(label) if label is not None else None, statements))
        self.scopes.pop()
        return ir.Switch(self.span(node), value, cases)

    def _return(self, node: Node) -> ir.Stmt:
        value = next(iter(uncommented(node)), None)
        return ir.Return(self.span(node), self.expression(value) if value is not None else None)

    def _break(self, node: Node) -> ir.Stmt:
        return ir.Break(self.span(node))

    def _continue(self, node: Node) -> ir.Stmt:
        return ir.Continue(self.span(node))

    def _goto(self, node: Node) -> ir.Stmt:
        """A jump ahead, out of the statements around it. One back or into a block is not followed, which is said."""
        name = self.source.node_code(uncommented(node)[0]) if uncommented(node) else ""
        function = enclosing(node, "function_definition", "lambda_expression")
        for label in _labels_in(self.source, function).get(name, ()) if function is not None else ():
            block = label.parent
            if block is None or block.type != "compound_statement":
                continue
            if block.start_byte <= node.start_byte < label.start_byte:
                return ir.Goto(self.span(node), name)
        self.incomplete.append(f"line {self.span(node).line} jumps where it is not followed")
        return ir.Block(self.span(node), [])

    def _label(self, node: Node) -> ir.Stmt:
        inner = uncommented(node)[-1] if len(uncommented(node)) > 1 else None
        label = ir.Label(self.span(node), self.source.node_code(uncommented(node)[0]))
        return ir.Block(self.span(node), [label, self.statement(inner)], has_labels=True)

    def _labeled(self, node: Node) -> ir.Stmt:
        return self.statement(uncommented(node)[-1] if uncommented(node) else None)

    def _local_type(self, node: Node) -> ir.Stmt:
        if node.type == "alias_declaration":
            name = node.child_by_field_name("name")
            if name is not None:
                self.scopes[-1].names[self.source.node_code(name)] = self.type_of(node.child_by_field_name("type"))
        elif node.type == "type_definition":
            base = self.type_of(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                kind, label, _ = self.declared(base, declarator)
                if label:
                    self.scopes[-1].names[label] = kind
        else:
            name = node.child_by_field_name("name")
            if name is not None and node.child_by_field_name("body") is not None:
                self.scopes[-1].names[self.source.node_code(name)] = self.type_of(node)
        return ir.Block(self.span(node), [])


@lru_cache(maxsize=16)
def _labels_in(source: Source, function: Node) -> Mapping[str, list[Node]]:
    """The labelled statements of a function by their labels: each jump asks."""
    found: dict[str, list[Node]] = {}
    for statement in descendants(function, "labeled_statement"):
        found.setdefault(source.node_code(uncommented(statement)[0]), []).append(statement)
    return found


def _joined(span: Span, body: list[ir.Stmt]) -> ir.Block:
    """A block; what a label stands before is a statement of the block itself."""
    if not any(isinstance(child, ir.Block) and child.has_labels for child in body):
        return ir.Block(span, body)
    flat: list[ir.Stmt] = []
    for child in body:
        flat += child.body if isinstance(child, ir.Block) and child.has_labels else [child]
    return ir.Block(span, flat, has_labels=True)


def _is_pointer_to_function(declarator: Node) -> bool:
    """`(*f)(int)`, which declares a variable."""
    inner = declarator.child_by_field_name("declarator")
    return inner is not None and inner.type == "parenthesized_declarator"


def _open_number(span: Span) -> ir.Expr:
    """A number that is the same for all lanes, and that the text does not give."""
    return ir.Const(span, None, INT)


def _constant_name(value: int, kind: CType) -> Callable[[Span], ir.Expr]:
    return lambda span: ir.Const(span, value, kind)


_Statement = Callable[[Lowerer, Node], ir.Stmt]

_STATEMENTS: dict[str, _Statement] = {
    "compound_statement": Lowerer._block,
    "expression_statement": Lowerer._expression_statement,
    "declaration": Lowerer._declaration,
    "if_statement": Lowerer._if,
    "else_clause": Lowerer._else,
    "for_statement": Lowerer._for,
    "for_range_loop": Lowerer._range_for,
    "while_statement": Lowerer._while,
    "do_statement": Lowerer._do,
    "switch_statement": Lowerer._switch,
    "return_statement": Lowerer._return,
    "break_statement": Lowerer._break,
    "continue_statement": Lowerer._continue,
    "labeled_statement": Lowerer._label,
    "goto_statement": Lowerer._goto,
    "alias_declaration": Lowerer._local_type,
    "type_definition": Lowerer._local_type,
    "struct_specifier": Lowerer._local_type,
    "attributed_statement": Lowerer._labeled,
    "type_identifier": Lowerer._lone_name,
}
