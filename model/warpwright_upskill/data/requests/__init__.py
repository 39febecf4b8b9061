"""What users ask for: operators with the words that people have for them, composed into formulas and requests."""
