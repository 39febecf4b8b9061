// Adds each edge's value to its node, as in a graph layer.
// Pitfall: a thread walks over the features of its edge, so the atomics of a warp lie in up to 32 rows.
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

__global__ void scatter_add(const float* messages, const int* target, float* nodes, int edges, int features) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges) {
        for (int f = 0; f < features; f++) {
            atomicAdd(nodes + target[e] * features + f, messages[e * features + f]);
        }
    }
}

int main() {
    const int edges = 131072, node_count = 16384, features = 32;
    std::vector<float> messages(edges * features), nodes(node_count * features), expected(node_count * features, 0.0f);
    std::vector<int> target(edges);
    for (int e = 0; e < edges; e++) {
        target[e] = (e * 4099) % node_count;
        for (int f = 0; f < features; f++) {
            messages[e * features + f] = static_cast<float>((e + f) % 5);
            expected[target[e] * features + f] += messages[e * features + f];
        }
    }

    float *d_messages, *d_nodes;
    int* d_target;
    CHECK(cudaMalloc(&d_messages, edges * features * sizeof(float)));
    CHECK(cudaMalloc(&d_target, edges * sizeof(int)));
    CHECK(cudaMalloc(&d_nodes, node_count * features * sizeof(float)));
    CHECK(cudaMemcpy(d_messages, messages.data(), edges * features * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_target, target.data(), edges * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_nodes, 0, node_count * features * sizeof(float)));

    scatter_add<<<(edges + 255) / 256, 256>>>(d_messages, d_target, d_nodes, edges, features);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(nodes.data(), d_nodes, node_count * features * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < node_count * features; i++) {
        if (std::fabs(nodes[i] - expected[i]) > 1e-3f) {
            std::printf("element %d: %f, expected %f\n", i, nodes[i], expected[i]);
            return 1;
        }
    }
    std::printf("added %d edges to %d nodes\n", edges, node_count);
    CHECK(cudaFree(d_messages));
    CHECK(cudaFree(d_target));
    CHECK(cudaFree(d_nodes));
    return 0;
}
