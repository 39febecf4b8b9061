// Kernels that take less than their launches.
//
// device: cuda
// bound: launches
// proposal: CUDA graph
#include "_run.cuh"

int main(int count, char** arguments) {
    const int n = 1 << 10, steps = 500, each_step = 100;
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    const auto slow = [=] {
        for (int step = 0; step < steps * each_step; ++step) {
            scale<<<4, 256, 0, stream>>>(x, n);  // here
        }
        cudaStreamSynchronize(stream);
    };
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int step = 0; step < each_step; ++step) scale<<<4, 256, 0, stream>>>(x, n);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    const auto cured = [=] {
        for (int step = 0; step < steps; ++step) cudaGraphLaunch(ready, stream);
        cudaStreamSynchronize(stream);
    };
    return run(count, arguments, slow, cured);
}
