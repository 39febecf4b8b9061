"""Does the candidate compute what the original computes, and from the same inputs?"""
