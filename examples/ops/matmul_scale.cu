// The kernels of matmul_scale on a GPU: one thread for each element of the outputs. `T_x` is the element type of x.

typedef acc_t<T_x> Sum;

extern "C" __global__ void matmul_scale(oflow::Tensor<T_x> x, oflow::Tensor<T_w> w, oflow::Tensor<T_y> y, double scale)
{
    for (long long at = oflow::first(); at < y.numel(); at += oflow::step()) {
        const long long i = at / y.size(1), j = at % y.size(1);
        Sum sum = 0;
        for (long long l = 0; l < x.size(1); ++l)
            sum += of_get<Sum>(x(i, l)) * of_get<Sum>(w(l, j));
        of_set(y(i, j), (Sum)scale * sum);
    }
}

extern "C" __global__ void matmul_scale_grad(oflow::Tensor<T_dy> dy, oflow::Tensor<T_x> x, oflow::Tensor<T_w> w, oflow::Tensor<T_dx> dx,
                                             oflow::Tensor<T_dw> dw, double scale)
{
    const long long first = dx.numel();
    for (long long at = oflow::first(); at < first + dw.numel(); at += oflow::step()) {
        Sum sum = 0;
        if (at < first) {
            const long long i = at / dx.size(1), l = at % dx.size(1);
            for (long long j = 0; j < dy.size(1); ++j)
                sum += of_get<Sum>(dy(i, j)) * of_get<Sum>(w(l, j));
            of_set(dx(i, l), (Sum)scale * sum);
        } else {
            const long long l = (at - first) / dw.size(1), j = (at - first) % dw.size(1);
            for (long long i = 0; i < dy.size(0); ++i)
                sum += of_get<Sum>(x(i, l)) * of_get<Sum>(dy(i, j));
            of_set(dw(l, j), (Sum)scale * sum);
        }
    }
}
