// An op in CUDA text alone: softclip, x / (1 + |x| / limit). The comments declare the op and its gradient op.

/* oflow
op: softclip(x: f32|f64; limit: runtime float = 1.0) -> y
domain: demo
doc: x / (1 + |x| / limit).
function: softclip(Tensor x, *, Float limit=1.0) -> Tensor
signature: S(0) -> S(0)
signature: S(1) -> S(1)
gradient: x = demo.softclip_grad(grad y, x; limit)
sample: f32[4, 6]
sample: f64[3, 5]; limit=0.5
kernel: softclip
*/
extern "C" __global__ void softclip(oflow::Tensor<T_x> x, oflow::Tensor<T_y> y, double limit)
{
    for (long long i = oflow::first(); i < y.numel(); i += oflow::step()) {
        const double v = x[i];
        y[i] = (T_y)(v / (1 + (v < 0 ? -v : v) / limit));
    }
}

/* oflow
op: softclip_grad(dy: f32|f64, x: f32|f64; limit: runtime float = 1.0) -> dx
domain: demo
doc: Gradient of softclip.
traits: hidden
shape: [..], [..] -> [..]
signature: S(0), S(0) -> S(0)
signature: S(1), S(1) -> S(1)
signature: P, B -> P
sample: f32[4, 6] f32[4, 6]
sample: f64[3, 5] f64[3, 5]; limit=0.5
kernel: softclip_grad
*/
extern "C" __global__ void softclip_grad(oflow::Tensor<T_dy> dy, oflow::Tensor<T_x> x, oflow::Tensor<T_dx> dx, double limit)
{
    for (long long i = oflow::first(); i < dx.numel(); i += oflow::step()) {
        const double v = x[i], d = 1 + (v < 0 ? -v : v) / limit;
        dx[i] = (T_dx)(dy[i] / (d * d));
    }
}
