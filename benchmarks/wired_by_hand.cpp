// Wrappers as a developer writes them by hand: an operator with a device guard, the current stream and the checks that
// keep a launch from reading what is not there. They launch what `wire` wrote, so that only the wrappers differ. Those of
// by_hand_with_backward have a derivative too, by torch::autograd::Function as PyTorch's documentation writes one.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rsqrt.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>
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

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename Signature>
auto below_autograd(const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

struct ScaleChunks : torch::autograd::Function<ScaleChunks> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double factor) {
        const at::AutoDispatchBelowADInplaceOrView below;
        ctx->saved_data["factor"] = factor;
        static const auto op = below_autograd<at::Tensor(const at::Tensor&, double)>("by_hand_with_backward::scale_chunks");
        return op.call(x, factor);
    }
    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        return {gradients[0] * ctx->saved_data["factor"].toDouble(), at::Tensor()};
    }
};

struct MatvecRows : torch::autograd::Function<MatvecRows> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& x) {
        const at::AutoDispatchBelowADInplaceOrView below;
        ctx->save_for_backward({a, x});
        static const auto op =
            below_autograd<at::Tensor(const at::Tensor&, const at::Tensor&)>("by_hand_with_backward::matvec_rows");
        return op.call(a, x);
    }
    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto kept = ctx->get_saved_variables();
        return {at::outer(gradients[0], kept[1]), at::mv(kept[0].t(), gradients[0])};
    }
};

struct RmsNormBlock : torch::autograd::Function<RmsNormBlock> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, double eps) {
        const at::AutoDispatchBelowADInplaceOrView below;
        ctx->save_for_backward({x, weight});
        ctx->saved_data["eps"] = eps;
        static const auto op = below_autograd<at::Tensor(const at::Tensor&, const at::Tensor&, double)>(
            "by_hand_with_backward::rms_norm_block");
        return op.call(x, weight, eps);
    }
    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto kept = ctx->get_saved_variables();
        const at::Tensor &x = kept[0], scaled = gradients[0] * kept[1];
        const at::Tensor rate = at::rsqrt((x * x).mean(1, true) + ctx->saved_data["eps"].toDouble());
        const at::Tensor normal = x * rate;
        return {(scaled - normal * (scaled * normal).mean(1, true)) * rate, (gradients[0] * normal).sum(0), at::Tensor()};
    }
};

at::Tensor scale_chunks_autograd(const at::Tensor& x, double factor) { return ScaleChunks::apply(x, factor); }
at::Tensor matvec_rows_autograd(const at::Tensor& a, const at::Tensor& x) { return MatvecRows::apply(a, x); }
at::Tensor rms_norm_block_autograd(const at::Tensor& x, const at::Tensor& weight, double eps) {
    return RmsNormBlock::apply(x, weight, eps);
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

TORCH_LIBRARY(by_hand_with_backward, m) {
    m.def("scale_chunks(Tensor x, float factor) -> Tensor");
    m.def("matvec_rows(Tensor a, Tensor x) -> Tensor");
    m.def("rms_norm_block(Tensor x, Tensor weight, float eps) -> Tensor");
}

TORCH_LIBRARY_IMPL(by_hand_with_backward, CUDA, m) {
    m.impl("scale_chunks", &scale_chunks);
    m.impl("matvec_rows", &matvec_rows);
    m.impl("rms_norm_block", &rms_norm_block);
}

TORCH_LIBRARY_IMPL(by_hand_with_backward, Autograd, m) {
    m.impl("scale_chunks", &scale_chunks_autograd);
    m.impl("matvec_rows", &matvec_rows_autograd);
    m.impl("rms_norm_block", &rms_norm_block_autograd);
}
