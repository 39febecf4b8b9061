"""Torch extensions: what Python can call in one, and the tensors that a call needs.

`entries` reads which functions a PYBIND11_MODULE or TORCH_LIBRARY binds, `schema` torch's own signatures, `said` what
a user adds (sample.toml, directives), and `problem` puts them together.
"""
