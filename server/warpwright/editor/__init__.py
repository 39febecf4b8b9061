"""Answers to an editor's questions, as plain data. Knows no protocol."""
