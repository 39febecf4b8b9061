"""What a kernel computes: a small language of tensor formulas, as in `y[r] = sum[c] x[r, c] * w[c]`. Knows no CUDA."""
