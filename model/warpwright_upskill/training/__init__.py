"""Weights taught by rows of tokens: batches, adapters, checkpoints, answers and what they are worth."""
