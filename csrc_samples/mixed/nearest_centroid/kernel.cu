// The squared distance of each point to the nearest of 64 centroids, as in a step of k-means.
// Pitfall: a point's coordinates lie together, so lanes are dim floats apart, and all are loaded for each centroid.
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

#define CENTROIDS 64

__global__ void nearest_centroid(const float* points, const float* centroids, float* nearest, int count, int dim) {
    int p = blockDim.x * blockIdx.x + threadIdx.x;
    if (p >= count) return;

    float best = 1e30f;
    for (int c = 0; c < CENTROIDS; c++) {
        float distance = 0.0f;
        for (int d = 0; d < dim; d++) {
            distance += powf(points[p * dim + d] - centroids[c * dim + d], 2);
        }
        best = fminf(best, distance);
    }
    nearest[p] = best;
}

int main() {
    const int count = 1 << 17, dim = 16;
    std::vector<float> points(count * dim), centroids(CENTROIDS * dim), nearest(count);
    for (int i = 0; i < count * dim; i++) points[i] = static_cast<float>((i * 7) % 100);
    for (int i = 0; i < CENTROIDS * dim; i++) centroids[i] = static_cast<float>((i * 13) % 100);

    float *d_points, *d_centroids, *d_nearest;
    CHECK(cudaMalloc(&d_points, points.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_centroids, centroids.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_nearest, nearest.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_points, points.data(), points.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_centroids, centroids.data(), centroids.size() * sizeof(float), cudaMemcpyHostToDevice));

    nearest_centroid<<<(count + 255) / 256, 256>>>(d_points, d_centroids, d_nearest, count, dim);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(nearest.data(), d_nearest, nearest.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int p = 0; p < count; p++) {
        float best = 1e30f;
        for (int c = 0; c < CENTROIDS; c++) {
            float distance = 0.0f;
            for (int d = 0; d < dim; d++) {
                float offset = points[p * dim + d] - centroids[c * dim + d];
                distance += offset * offset;
            }
            if (distance < best) best = distance;
        }
        if (std::fabs(nearest[p] - best) > 1e-4f * best + 1e-4f) {
            std::printf("point %d: %f, expected %f\n", p, nearest[p], best);
            return 1;
        }
    }
    std::printf("nearest centroids of %d points\n", count);
    CHECK(cudaFree(d_points));
    CHECK(cudaFree(d_centroids));
    CHECK(cudaFree(d_nearest));
    return 0;
}
