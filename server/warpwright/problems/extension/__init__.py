"""Torch extensions: the tensors that a call of what Python can call needs.

`said` reads what a user adds (sample.toml, directives), and `problem` puts it with what `cuda/extension` reads.
"""
