// Copies the row of a table that each token asks for, one thread for each token.
// Pitfall: a thread copies a whole row by itself, so the lanes of a warp store a row apart and load from 32 rows.
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

__global__ void embedding_lookup(const float* table, const int* tokens, float* out, int count, int vocabulary,
                                 int dim) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    int row = tokens[t];
    if (row < 0 || row >= vocabulary) return;
    for (int d = 0; d < dim; d++) {
        out[t * dim + d] = table[row * dim + d];
    }
}

int main() {
    const int count = 16384, vocabulary = 32000, dim = 256;
    std::vector<float> table(vocabulary * dim), out(count * dim);
    std::vector<int> tokens(count);
    for (int i = 0; i < vocabulary * dim; i++) table[i] = static_cast<float>(i % 8191);
    for (int t = 0; t < count; t++) tokens[t] = (t * 7919) % vocabulary;

    float *d_table, *d_out;
    int* d_tokens;
    CHECK(cudaMalloc(&d_table, table.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_tokens, tokens.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_table, table.data(), table.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_tokens, tokens.data(), tokens.size() * sizeof(int), cudaMemcpyHostToDevice));

    embedding_lookup<<<(count + 255) / 256, 256>>>(d_table, d_tokens, d_out, count, vocabulary, dim);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int t = 0; t < count; t++) {
        for (int d = 0; d < dim; d++) {
            if (out[t * dim + d] != table[tokens[t] * dim + d]) {
                std::printf("token %d, element %d: %f\n", t, d, out[t * dim + d]);
                return 1;
            }
        }
    }
    std::printf("looked up %d tokens\n", count);
    CHECK(cudaFree(d_table));
    CHECK(cudaFree(d_tokens));
    CHECK(cudaFree(d_out));
    return 0;
}
