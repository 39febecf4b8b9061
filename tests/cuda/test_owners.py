"""Classes that own memory of the device, in text that may be half written."""

from __future__ import annotations

import pytest
from warpwright.cuda.owners import owners_in
from warpwright.syntax.source import Source

CLASS = (
    "{head}struct Buffer {{ {type} *p; Buffer(int n) {{ cudaMalloc({arguments}); }} ~Buffer() {{ cudaFree(p); }} }};\n"
)


def elements(arguments: str, kind: str = "float", use: str = "Buffer x(5);", head: str = "") -> list[str]:
    """The types of the elements of the owners that a function declares."""
    text = CLASS.format(head=head, type=kind, arguments=arguments) + f"void f() {{ {use} }}\n"
    source = Source("a.cu", text.encode())
    return [owner.element for owner in owners_in(source, source.root)]


@pytest.mark.parametrize("kind", ["float", "unsigned int"])
def test_the_type_is_as_it_is_written(kind: str) -> None:
    assert elements(f"&p, n * sizeof({kind})", kind) == [kind]


@pytest.mark.parametrize("arguments", ["", "&p", "&p, ", "&p, n", "&p, n + sizeof(float)", "&p, sizeof(float) *"])
def test_what_does_not_count_elements_owns_nothing_that_is_known(arguments: str) -> None:
    assert elements(arguments) == []


def test_a_template_without_arguments_has_no_type() -> None:
    head = "template <typename T> "
    assert elements("&p, n * sizeof(T)", "T", "Buffer<float> x(5);", head) == ["float"]
    assert elements("&p, n * sizeof(T)", "T", "Buffer<> x(5);", head) == ["T"]
