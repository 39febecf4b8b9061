"""Integers as C computes with them, sums of products, and what is tried with many numbers. It knows no text."""
