"""Profiles of kernels: kept, laid out over the text, and as a page."""
