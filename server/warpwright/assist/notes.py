"""Comments that ask for no kernel, whatever stands below them: notes, licence lines and heads of sections that name no
operation, and words of another language than English, in which the wordings and the model's lessons are."""

from __future__ import annotations

import re
import unicodedata

from warpwright.assist.formula_examples import operations

_NOTE = re.compile(
    r"^\W*(?:(?:todo|fixme|note|hack|xxx|bug|warning|nb)\b(?:\s*\(\s*[\w.@-]+\s*\))?\s*:?"
    r"|spdx-|copyright\b|\(c\)|licen[cs]e|all rights|see\s|author|http)|^\s*[-=*#~]{3,}",
    re.IGNORECASE,
)
_EQUATION = re.compile(r"(?<![/?&.\w])\w+[\])'}]*\s*[-+*/|&^]?=\s*[-\w(\[{|]|<-|\w\[[^\]]*\]")
_OF_OTHERS = """
und der das ein eine einer jede jeder jedes von mit für auf ist zeile zeilen spalte werden wird muss nicht den dem
le les des une chaque pour avec dans et est sur ligne lignes colonne somme
el los las del una cada fila filas para suma
il della delle ogni riga somma
linha coluna soma dos
het een elke rij
"""
"""Small words of other languages, and theirs for rows, columns and sums. English and formulas have one of them at
most."""
_MOST_OF_OTHERS = 1
_ALPHABETS = ("LATIN", "GREEK", "MATHEMATICAL", "DOUBLE-STRUCK", "SCRIPT", "SUPERSCRIPT", "SUBSCRIPT", "MODIFIER",
              "MICRO", "FEMININE", "MASCULINE", "N-ARY", "BLACK-LETTER", "ANGSTROM", "KELVIN", "OHM")  # fmt: skip


def asks_for_nothing(comment: str) -> bool:
    """Whether a comment is a note without an operation, or in another language as far as its small words tell.

    >>> [asks_for_nothing(each) for each in ("row sums of x", "TODO: relu of x", "w_k <- w_k / 2", "twice x")]
    [False, False, False, False]
    >>> [asks_for_nothing(each) for each in ("", "FIXME(jk): too slow", "--- helpers ---", "Summe der Zeilen von x")]
    [True, True, True, True]
    """
    words = re.findall(r"[^\W\d_][\w-]*", comment.lower())
    if (
        not words
        or len({*words} & {*_OF_OTHERS.split()}) > _MOST_OF_OTHERS
        or any(map(_is_of_another_alphabet, comment))
    ):
        return True
    note = _NOTE.match(comment)
    rest = comment[note.end() :] if note else ""
    return note is not None and not operations(rest) and not _EQUATION.search(rest)


def _is_of_another_alphabet(character: str) -> bool:
    return (
        not character.isascii() and character.isalpha() and not unicodedata.name(character, "").startswith(_ALPHABETS)
    )
