"""Formulas of every kind, each a few lines: what the references, the shapes and the tolerances are tried on."""

from __future__ import annotations

FORMULAS: dict[str, str] = {
    "copy": "y[i] = x[i]",
    "axpy": "y'[i] = a * x[i] + y[i]",
    "transpose": "y[i, j] = x[j, i]",
    "outer": "y[i, j] = a[i] * b[j]",
    "scalar": "y = sum[i] x[i]",
    "dot in f64": "y = sum:f64[i] x[i] * w[i]",
    "softmax": "y[r, c] = exp(x[r, c] - m[r]) / s[r] where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])",
    "bf16 softmax": "x: bf16[R, C] y: bf16[R, C] y[r, c] = exp(x[r, c] - m[r]) / s[r]"
    " where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])",
    "softmax in one": "y[r, c] = exp(x[r, c]) / sum[c] exp(x[r, c])",
    "log softmax": "y[r, c] = x[r, c] - logsumexp[k] x[r, k]",
    "layer norm": "y[r, c] = (x[r, c] - m[r]) * rsqrt(v[r] + 0.00001) * w[c] + b[c]"
    " where m[r] = mean[c] x[r, c], v[r] = var[c] x[r, c]",
    "layer norm backward": "dx[r, c] = q[r] * (g[r, c] - p[r] - h[r, c] * t[r])"
    " where m[r] = mean[c] x[r, c], q[r] = rsqrt(0.00001 + var[c] x[r, c]), h[r, c] = (x[r, c] - m[r]) * q[r],"
    " g[r, c] = dy[r, c] * w[c], p[r] = mean[c] g[r, c], t[r] = mean[c] g[r, c] * h[r, c]",
    "rms norm with residual": "z[r, c] = x[r, c] + r0[r, c],"
    " y[r, c] = z[r, c] * rsqrt(mean[k] z[r, k] * z[r, k] + 0.00001) * w[c]",
    "adam": "p'[i] = p[i] - lr * (mn[i] / (1 - b1)) / (sqrt(vn[i] / (1 - b2)) + 0.00000001),"
    " m'[i] = mn[i], v'[i] = vn[i] where mn[i] = b1 * m[i] + (1 - b1) * g[i],"
    " vn[i] = b2 * v[i] + (1 - b2) * g[i] * g[i]",
    "cross entropy": "t: i64[R] y[r] = logsumexp[c] x[r, c] - x[r, t[r]]",
    "attention": "y[h, i, d] = sum[j] p[h, i, j] * v[h, j, d]"
    " where s[h, i, j] = 0.125 * sum[e] q[h, i, e] * k[h, j, e], m[h, i] = max[j] s[h, i, j],"
    " t[h, i] = sum[j] exp(s[h, i, j] - m[h, i]), p[h, i, j] = exp(s[h, i, j] - m[h, i]) / t[h, i]",
    "causal attention": "y[h, i, d] = sum[j <= i] exp(s[h, i, j] - l[h, i]) * v[h, j, d]"
    " where s[h, i, j] = sum[e] q[h, i, e] * k[h, j, e] / 8, l[h, i] = logsumexp[j <= i] s[h, i, j]",
    "matrix product": "y[i, j] = relu(sum[k] a[i, k] * b[k, j] + c[j])",
    "f16 matrix product": "a: f16[I, K] b: f16[K, J] y: f16[I, J] y[i, j] = sum[k] a[i, k] * b[k, j]",
    "i8 matrix product": "a: i8[I, K] b: i8[J, K] y[i, j] = sum:i32[k] a[i, k] * b[j, k]",
    "batched": "y[b, i, j] = sum[k] a[b, i, k] * c[b, k, j]",
    "three factors": "y[i, j] = sum[k, l] a[i, k] * b[k, l] * c[l, j]",
    "convolution": "y[n, o, h, w] = sum[c, u < 3, v < 3] x[n, c, h + u - 1, w + v - 1; zero] * f[o, c, u, v]",
    "filter": "y[i] = sum[k < 5] w[k] * x[i + k]",
    "max pool": "y[n, h, w] = max[u < 3, v < 3] x[n, h + u - 1, w + v - 1; -inf]",
    "mean pool": "x: f32[N, 2 * H] y: f32[N, H] y[n, h] = mean[u < 2] x[n, 2 * h + u]",
    "stencil": "y[i, j, k] = x[i - 1, j, k; zero] + x[i + 1, j, k; zero] + x[i, j - 1, k; clamp] + x[i, j + 1, k; wrap]"
    " + x[i, j, k - 1; reflect] + x[i, j, k + 1; reflect] - 6 * x[i, j, k]",
    "running sum": "y[r, i] = sum[j <= i] x[r, j]",
    "exclusive": "y[i] = sum[j < i] x[i - j] * x[j]",
    "running maximum": "y[i] = max[j <= i] x[j]",
    "segments": "y[r] = sum[first[r] <= e < first[r + 1]] x[e]",
    "sparse product": "y[r, d] = sum[first[r] <= e < first[r + 1]] a[e] * x[column[e], d]",
    "argmax": "y[r] = argmax[c] x[r, c], z[r] = max[c] x[r, c]",
    "argmin of all": "y = argmin[r, c] x[r, c]",
    "embedding": "y[t, d] = table[ids[t], d]",
    "histogram": "h: i32[16] b: u8[I] h[b[i] % 16] = sum[i] 1",
    "group means": "t: f32[4] n: f32[4] y[i] = x[i] - t[k[i] % 4] / n[k[i] % 4] "
    "where t[k[i] % 4] = sum[i] x[i], n[k[i] % 4] = sum[i] 1",
    "index add": "h[b[i], d] += x[i, d]",
    "scatter max": "h[b[i]] max= x[i]",
    "rotary": "y[t, h, d] = x[t, h, d] * cos(a[t, d]) + (-x[t, h, d + 4] if d < 4 else x[t, h, d - 4]) * sin(a[t, d])"
    " x: f32[T, H, 8] y: f32[T, H, 8]",
    "quantise": "q: i8[R, C] q[r, c] = clamp(round(x[r, c] / s[r]), -127.0, 127.0), z[r] = s[r]"
    " where s[r] = max(max[c] abs(x[r, c]), 0.00001) / 127.0",
    "dequantise": "q: i8[R, C] y: f16[R, C] y[r, c] = (q[r, c] - z[r]) * s[r]",
    "to f8": "y: f8e4m3[I] y[i] = x[i] * s",
    "n-body": "f[i, d] = sum[j] (p[j, d] - p[i, d]) * q[i, j] ** 3"
    " where q[i, j] = rsqrt(0.01 + sum[e < 3] square(p[j, e] - p[i, e])) p: f32[N, 3]",
    "band": "y[i] = sum[j] (x[j] if j - i <= 2 and i - j <= 2 else 0.0)",
    "any and all": "a[r] = any[c] (x[r, c] > 1.0), b[r] = all[c] (x[r, c] > -1.0)",
    "complex": "z: c64[N] w: c64[N] y[n] = exp(z[n]) * conj(w[n]), r[n] = abs(z[n])",
    "complex product": "a: c64[I, K] b: c64[K, J] y[i, j] = sum[k] a[i, k] * b[k, j]",
    "dropout": "y[i] = x[i] / (1 - p) if uniform(seed, i) >= p else 0.0",
    "noise": "y[i] = x[i] + s * normal(seed, i)",
    "hash": "x: u32[I] y[i] = (x[i] ^ (x[i] >> 16)) * 0x45d9f3b",
    "bits": "x: i32[I] y[i] = popc(x[i]) + clz(x[i]) + (x[i] << 3) - (x[i] // 7) * (x[i] % 5)",
    "special functions": "y[i] = erf(x[i]) + lgamma(a[i]) + j0(x[i]) + cbrt(x[i]) + atan2(x[i], a[i]) + tanh(x[i])",
    "gelu": "x: f16[R, C] y: f16[R, C] y[r, c] = gelu(x[r, c] + b[c])",
    "f64": "x: f64[R, C] y[r] = std[c] x[r, c], z[r] = logsumexp[c] x[r, c]",
    "product": "y[r] = prod[c] x[r, c]",
    "norm": "y = sqrt(sum[r, c] x[r, c] * x[r, c])",
    "packed": "p: f32[N]{x, y, z} r[n] = sqrt(p.x[n] * p.x[n] + p.y[n] * p.y[n] + p.z[n] * p.z[n])",
    "column-major": "x: f32[R, C] column y: f32[R, C] y[r, c] = 2 * x[r, c]",
    "reshape": "x: f32[H * 4] y: f32[H, 4] y[h, d] = x[h * 4 + d]",
    "conditions": "x: i32[I] y[i] = 1.5 if x[i] > 3 and not x[i] == 7 or x[i] < -50 else f32(x[i])",
}
"""By name."""
