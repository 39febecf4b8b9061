"""Which comments ask for nothing: notes without an operation, and other languages."""

from __future__ import annotations

import pytest
from warpwright.assist.notes import asks_for_nothing


@pytest.mark.parametrize(
    "comment",
    [
        "TODO: relu of x",
        "crc32 of each message",
        "w_k <- w_k / 2",
        "van der Waals pressure per element, RT/(V - b) - a / V^2",
        "8-bit \u00b5-law codes: clip |x| at 1",
        "y[i] = x[i]",
    ],
)
def test_something_is_asked_for(comment: str) -> None:
    assert not asks_for_nothing(comment)


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "TODO: this is too slow for large batches, profile it",
        "FIXME(jk): check the alignment of x before the vector loads",
        "Copyright (c) 2024 Acme Corp. All rights reserved.",
        "SPDX-License-Identifier: Apache-2.0",
        "=== helpers ===",
        "see https://example.com/a=b",
        "softmax jeder Zeile von x",
        "somme de chaque ligne de x",
        "suma de cada fila de x",
        "\u884c\u3054\u3068\u306e\u30bd\u30d5\u30c8\u30de\u30c3\u30af\u30b9",
        "softmax \u0441\u0442\u0440\u043e\u043a x",
    ],
)
def test_nothing_is_asked_for(comment: str) -> None:
    assert asks_for_nothing(comment)
