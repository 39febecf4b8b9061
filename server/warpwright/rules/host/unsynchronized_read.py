"""The host reads memory that an asynchronous copy is still writing.

## Why is this bad?

`cudaMemcpyAsync` to pinned memory returns before anything was copied. Until the stream is waited for, the host reads
what was there before, sometimes: whether it does depends on how fast the GPU is.

## Example

```cuda
float first(const float *device, cudaStream_t stream) {
  float *host;
  cudaMallocHost(&host, 1024);
  cudaMemcpyAsync(host, device, 1024, cudaMemcpyDeviceToHost, stream);
  float value = host[0];
  cudaFreeHost(host);
  return value;
}
```

## Use instead

```cuda
float first(const float *device, cudaStream_t stream) {
  float *host;
  cudaMallocHost(&host, 1024);
  cudaMemcpyAsync(host, device, 1024, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  float value = host[0];
  cudaFreeHost(host);
  return value;
}
```

## Limits

- Reads by `host[i]` and `*host` in the statements after the copy, in its block and those around it, up to a call
  whose name says that it waits. Memory that is known to be pageable is left out: such a copy to the host has ended
  when the call returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.cures import cure, line_before
from warpwright.rules.host._statements import host_functions, is_pageable, runtime_calls, statement_of, text_of
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import parent_of
from warpwright.syntax.source import Span

severity = Severity.WARNING

_COPIES = re.compile(r"(?:cuda|hip)MemcpyAsync")
_WAITS = re.compile(
    r"(?:Sync|(?<!A)sync)|\bwait|(?:cuda|hip)(?:Memcpy\s*\(|Free|EventQuery|StreamQuery|DeviceReset)|\breturn\b"
)


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in host_functions(unit):
        source = function.source
        for call, _, given in runtime_calls(function, _COPIES):
            host = text_of(function, given[0]) if len(given) > 3 else ""
            place = re.fullmatch(r"(\w+)(?:\+.+)?|&(\w+)\[.+\]", host)
            if place is None or not text_of(function, given[3]).endswith("DeviceToHost"):
                continue
            host = place[1] or place[2]
            following = _following(function, call)
            read = re.compile(rf"\b{host}\s*\[[^\]]*\](?!\s*=[^=])|(?<![\w)\]])\*\s*{host}\b(?!\s*=[^=])")
            while following is not None and not is_pageable(function, host):
                text = source.node_code(following)
                waits, reads = _WAITS.search(text), read.search(text)
                if reads is not None and (waits is None or reads.start() < waits.start()):
                    line = source.position(call.start_byte)[0]
                    start = following.start_byte + len(encoded(text[: reads.start()]))
                    yield Finding(
                        span=Span(source, start, start + len(encoded(reads[0]))),
                        message=(
                            f"`{host}` is read while the copy of line {line} may still run\n"
                            "Wait for the stream first: cudaStreamSynchronize(stream)."
                        ),
                        evidence={"memory": host, "copy_line": line},
                        related=(Related(source.span(call), "copied here"),),
                        kernel=function.name,
                        cure=cure(
                            "Wait for the copy first", line_before(source, following, _wait(function, call, given))
                        ),
                    )
                if reads is not None or waits is not None:
                    break
                following = _following(function, following)


def _following(function: Function, node: Node) -> Node | None:
    """The statement that runs after the one that a node stands in, of its block or of one around it."""
    statement = statement_of(node)
    while statement is not None:
        if statement.next_named_sibling is not None:
            return statement.next_named_sibling
        block = parent_of(statement)
        statement = statement_of(block) if block is not None and block.start_byte > function.start else None
    return None


def _wait(function: Function, call: Node, given: list[Node]) -> str:
    """The statement that waits for the stream of a copy."""
    prefix = "hip" if function.source.node_code(call).lstrip().startswith("hip") else "cuda"
    stream = text_of(function, given[4]) if len(given) > 4 else "0"
    return f"{prefix}StreamSynchronize({stream});"
