"""What is known of one kernel from runs: its profile, and the candidates that were verified for it."""
