"""Starts programs that are fed text which nobody has vouched for: under limits, without network, the disk read-only."""
