// Prices European call options after Black and Scholes.
// Pitfall: plain literals and log, sqrt and exp of doubles make a float computation run in double precision.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

__device__ float normal_cdf(float d) {
    return 0.5 * erfc(-d * 0.70710678118654752);
}

__global__ void black_scholes(const float* price, const float* strike, const float* years, float* call, float rate,
                              float volatility, int options) {
    int o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= options) return;

    float s = price[o], k = strike[o], t = years[o];
    float root = volatility * sqrt(t);
    float d1 = (log(s / k) + (rate + 0.5 * volatility * volatility) * t) / root;
    float d2 = d1 - root;
    call[o] = s * normal_cdf(d1) - k * exp(-rate * t) * normal_cdf(d2);
}

int main() {
    const int options = 1 << 22;
    const float rate = 0.02f, volatility = 0.3f;
    std::vector<float> price(options), strike(options), years(options), call(options);
    for (int i = 0; i < options; i++) {
        price[i] = 5.0f + 0.25f * static_cast<float>(i % 100);
        strike[i] = 1.0f + 0.5f * static_cast<float>(i % 199);
        years[i] = 0.25f + 0.25f * static_cast<float>(i % 39);
    }

    float *d_price, *d_strike, *d_years, *d_call;
    const size_t bytes = options * sizeof(float);
    CHECK(cudaMalloc(&d_price, bytes));
    CHECK(cudaMalloc(&d_strike, bytes));
    CHECK(cudaMalloc(&d_years, bytes));
    CHECK(cudaMalloc(&d_call, bytes));
    CHECK(cudaMemcpy(d_price, price.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_strike, strike.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_years, years.data(), bytes, cudaMemcpyHostToDevice));

    black_scholes<<<(options + 255) / 256, 256>>>(d_price, d_strike, d_years, d_call, rate, volatility, options);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(call.data(), d_call, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < options; i++) {
        double s = price[i], k = strike[i], t = years[i];
        double root = volatility * std::sqrt(t);
        double d1 = (std::log(s / k) + (rate + 0.5 * volatility * volatility) * t) / root;
        double in = 0.5 * std::erfc(-d1 * std::sqrt(0.5)), out = 0.5 * std::erfc(-(d1 - root) * std::sqrt(0.5));
        double expected = s * in - k * std::exp(-rate * t) * out;
        if (std::fabs(call[i] - expected) > 1e-3) {
            std::printf("option %d: %f, expected %f\n", i, call[i], expected);
            return 1;
        }
    }
    std::printf("priced %d options\n", options);
    CHECK(cudaFree(d_price));
    CHECK(cudaFree(d_strike));
    CHECK(cudaFree(d_years));
    CHECK(cudaFree(d_call));
    return 0;
}
