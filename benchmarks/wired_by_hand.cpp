// Wrappers as a developer writes them by hand: an operator with a device guard, the current stream and the checks that
// keep a launch from reading what is not there. They launch what `wire` wrote, so that only the wrappers differ.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

extern "C" cudaError_t scale_chunks_f32(const float* x, float* y, long long I, float factor, cudaStream_t stream);
extern "C" cudaError_t matvec_rows_f32(const float* a, const float* x, float* y, long long I, long long J,
                                       cudaStream_t stream);
extern "C" cudaError_t rms_norm_block_f32(const float* x, const float* weight, float* out, long long R, long long C,
                                          float eps, cudaStream_t stream);
extern "C" cudaError_t saxpy_f32(const float* x, float* y, long long n, float a, cudaStream_t stream);

namespace {

const float* read(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), "must be contiguous and on a GPU");
    return tensor.const_data_ptr<float>();
}

at::Tensor scale_chunks(const at::Tensor& x, double factor) {
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor y = at::empty_like(x);
    C10_CUDA_CHECK(scale_chunks_f32(read(x), y.mutable_data_ptr<float>(), x.numel(), static_cast<float>(factor),
                                    c10::cuda::getCurrentCUDAStream()));
    return y;
}

at::Tensor matvec_rows(const at::Tensor& a, const at::Tensor& x) {
    TORCH_CHECK(a.dim() == 2 && x.dim() == 1 && a.size(1) == x.size(0), "shapes do not fit");
    const c10::cuda::CUDAGuard guard(a.device());
    at::Tensor y = at::empty({a.size(0)}, a.options());
    C10_CUDA_CHECK(matvec_rows_f32(read(a), read(x), y.mutable_data_ptr<float>(), a.size(0), a.size(1),
                                   c10::cuda::getCurrentCUDAStream()));
    return y;
}

at::Tensor rms_norm_block(const at::Tensor& x, const at::Tensor& weight, double eps) {
    TORCH_CHECK(x.dim() == 2 && weight.dim() == 1 && x.size(1) == weight.size(0), "shapes do not fit");
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor out = at::empty_like(x);
    C10_CUDA_CHECK(rms_norm_block_f32(read(x), read(weight), out.mutable_data_ptr<float>(), x.size(0), x.size(1),
                                      static_cast<float>(eps), c10::cuda::getCurrentCUDAStream()));
    return out;
}

void saxpy(const at::Tensor& x, at::Tensor& y, double a) {
    TORCH_CHECK(x.numel() == y.numel() && y.is_contiguous(), "shapes do not fit");
    const c10::cuda::CUDAGuard guard(x.device());
    C10_CUDA_CHECK(saxpy_f32(read(x), y.mutable_data_ptr<float>(), x.numel(), static_cast<float>(a),
                             c10::cuda::getCurrentCUDAStream()));
}

}  // namespace

TORCH_LIBRARY(by_hand, m) {
    m.def("scale_chunks(Tensor x, float factor) -> Tensor");
    m.def("matvec_rows(Tensor a, Tensor x) -> Tensor");
    m.def("rms_norm_block(Tensor x, Tensor weight, float eps) -> Tensor");
    m.def("saxpy(Tensor x, Tensor(a!) y, float a) -> ()");
}

TORCH_LIBRARY_IMPL(by_hand, CUDA, m) {
    m.impl("scale_chunks", &scale_chunks);
    m.impl("matvec_rows", &matvec_rows);
    m.impl("rms_norm_block", &rms_norm_block);
    m.impl("saxpy", &saxpy);
}
