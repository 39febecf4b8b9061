"""Text to tree, spans and edits. Knows no CUDA meaning."""
