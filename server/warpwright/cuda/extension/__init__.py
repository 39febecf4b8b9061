"""Torch extensions, as their text says: what Python can call, and the Python that calls it.

`entries` reads which functions a PYBIND11_MODULE or TORCH_LIBRARY binds, `schema` torch's own signatures, `script` a
Python file, without running it, and `unit` puts the files of one extension together, which `near` finds on disk."""
