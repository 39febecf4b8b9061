// Counts in 16 bins how many of each row's numbers, from 0 to 15, fall where; a thread for each row.
// Pitfall: the counters are an array of the thread that data indexes, so they lie in local memory.
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

__global__ void private_bins(const int* levels, int* histogram, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;

    int bins[16];
    for (int b = 0; b < 16; b++) bins[b] = 0;
    for (int c = 0; c < columns; c++) {
        bins[levels[c * rows + row]] += 1;
    }
    for (int b = 0; b < 16; b++) histogram[b * rows + row] = bins[b];
}

int main() {
    const int rows = 65536, columns = 64;
    std::vector<int> levels(rows * columns), histogram(16 * rows);
    for (int i = 0; i < rows * columns; i++) levels[i] = (i * 5 + i / rows) % 16;

    int *d_levels, *d_histogram;
    CHECK(cudaMalloc(&d_levels, levels.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_histogram, histogram.size() * sizeof(int)));
    CHECK(cudaMemcpy(d_levels, levels.data(), levels.size() * sizeof(int), cudaMemcpyHostToDevice));

    private_bins<<<(rows + 127) / 128, 128>>>(d_levels, d_histogram, rows, columns);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(histogram.data(), d_histogram, histogram.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        int expected[16] = {0};
        for (int c = 0; c < columns; c++) expected[levels[c * rows + row]]++;
        for (int b = 0; b < 16; b++) {
            if (histogram[b * rows + row] != expected[b]) {
                std::printf("row %d, bin %d: %d, expected %d\n", row, b, histogram[b * rows + row], expected[b]);
                return 1;
            }
        }
    }
    std::printf("histograms of %d rows\n", rows);
    CHECK(cudaFree(d_levels));
    CHECK(cudaFree(d_histogram));
    return 0;
}
