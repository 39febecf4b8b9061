"""Answers judged by what they compute and gain: prompts by hand, references, baselines, speed."""
