"""The language server protocol over the functions of `editor`: one file for each method."""
