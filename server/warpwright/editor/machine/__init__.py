"""Machine code beside its source, for a hover, a page in a browser, a document and a terminal."""
