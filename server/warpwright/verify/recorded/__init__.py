"""Host code that is run without a GPU, against a CUDA runtime that writes down what it is asked for."""
