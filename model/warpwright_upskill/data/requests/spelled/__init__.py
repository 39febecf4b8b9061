"""Requests that spell out their mathematics: formulas drawn from a grammar, said from their own syntax tree."""
