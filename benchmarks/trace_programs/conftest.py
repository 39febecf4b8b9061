"""The programs here are measured, not collected."""

collect_ignore_glob = ["*.py"]
