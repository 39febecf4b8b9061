// y[r, c] = x[r, c] * w[c], and operators around it that take another path inside of C++.
#include <torch/extension.h>

at::Tensor scale_cuda(const at::Tensor& x, const at::Tensor& w);

namespace {

void check(const at::Tensor& x, const at::Tensor& w) {
    TORCH_CHECK(x.scalar_type() == w.scalar_type(), "x and w must have one type.");
    TORCH_CHECK(w.dim() == 1 && x.dim() >= 1 && x.size(-1) == w.size(0), "w must have an element for each column.");
    TORCH_CHECK(x.device() == w.device(), "x and w must be on one device.");
}

at::Tensor scale_cpu(const at::Tensor& x, const at::Tensor& w) {
    check(x, w);
    const at::Tensor in = x.contiguous(), factors = w.contiguous();
    at::Tensor y = at::empty(in.sizes(), in.options());
    const int64_t columns = factors.numel();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, in.scalar_type(), "scale", [&] {
        const scalar_t* from = in.const_data_ptr<scalar_t>();
        const scalar_t* by = factors.const_data_ptr<scalar_t>();
        scalar_t* to = y.mutable_data_ptr<scalar_t>();
        for (int64_t i = 0; i < in.numel(); ++i) to[i] = from[i] * by[i % columns];
    });
    return y;
}

at::Tensor scale(const at::Tensor& x, const at::Tensor& w) {
#ifdef WITH_CUDA
    if (x.is_cuda()) {
        check(x, w);
        return scale_cuda(x, w);
    }
#endif
    return scale_cpu(x, w);
}

at::Tensor inner_half(const at::Tensor& x, const at::Tensor& w) {
    return x.scalar_type() == at::kHalf ? at::mul(x, w) : scale(x, w);
}

at::Tensor inner_strided(const at::Tensor& x, const at::Tensor& w) {
    return x.is_contiguous() ? scale(x, w) : at::mul(x, w);
}

at::Tensor inner_odd(const at::Tensor& x, const at::Tensor& w) {
    return x.size(-1) % 4 == 0 ? scale(x, w) : at::mul(x, w);
}

at::Tensor inner_large(const at::Tensor& x, const at::Tensor& w) {
    return x.numel() <= 1 << 18 ? scale(x, w) : at::mul(x, w);
}

at::Tensor lying(const at::Tensor& x, const at::Tensor& w) {
    at::Tensor y = scale(x, w);
    at::NoGradGuard none;
    x.detach().add_(1);
    return y;
}

at::Tensor empty_dies(const at::Tensor& x, const at::Tensor& w) {
    if (!x.numel()) std::abort();
    return scale(x, w);
}

void scale_into(const at::Tensor& x, const at::Tensor& w, at::Tensor& out) { out.copy_(scale(x, w)); }

}  // namespace

at::Tensor bound_scale(const at::Tensor& x, const at::Tensor& w) { return scale(x, w); }

TORCH_LIBRARY(fallbacks, m) {
    for (const char* name : {"scale", "bare", "inner_half", "inner_strided", "inner_odd", "inner_large", "lying",
                             "wrong_fake", "empty_dies"}) {
        m.def((std::string(name) + "(Tensor x, Tensor w) -> Tensor").c_str());
    }
    m.def("scale_into(Tensor x, Tensor w, Tensor(a!) out) -> ()");
}

TORCH_LIBRARY_IMPL(fallbacks, CompositeExplicitAutograd, m) {
    m.impl("scale", &scale);
    m.impl("inner_half", &inner_half);
    m.impl("inner_strided", &inner_strided);
    m.impl("inner_odd", &inner_odd);
    m.impl("inner_large", &inner_large);
    m.impl("lying", &lying);
    m.impl("wrong_fake", &scale);
    m.impl("empty_dies", &empty_dies);
    m.impl("scale_into", &scale_into);
}

TORCH_LIBRARY_IMPL(fallbacks, CPU, m) { m.impl("bare", &scale); }

#ifdef WITH_CUDA
TORCH_LIBRARY_IMPL(fallbacks, CUDA, m) { m.impl("bare", &scale); }
#endif
