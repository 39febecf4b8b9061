"""Examples: requests for formulas, plans and repairs as they are made, varied, checked and said."""
