// Tensors by index, in C++ on the host and in CUDA kernels. No other header is needed, so NVRTC compiles it.
//
//     extern "C" __global__ void softclip(oflow::Tensor<T_x> x, oflow::Tensor<T_y> y, double limit)
//     {
//         for (long long i = oflow::first(); i < y.numel(); i += oflow::step())
//             y[i] = x[i] / (1 + x[i] / limit);
//     }
//
// Indices are checked where OFLOW_CHECK_BOUNDS is 1: on the host a wrong one throws oflow::Error (oflow_op.hpp turns it on in debug
// builds), in a kernel it stops the kernel.
#ifndef OFLOW_TENSOR_H
#define OFLOW_TENSOR_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define OFLOW_FN __host__ __device__ inline
#else
#define OFLOW_FN inline
#endif

#ifndef OFLOW_CHECK_BOUNDS
#define OFLOW_CHECK_BOUNDS 0
#endif
#ifndef OFLOW_BOUNDS_FAILED
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define OFLOW_BOUNDS_FAILED(index, size) __trap()
#else
#define OFLOW_BOUNDS_FAILED(index, size) __builtin_trap()
#endif
#endif

namespace oflow {

// Dims that a tensor has at most, as an argument of a kernel.
constexpr int most_dims = 8;

OFLOW_FN void check_index(long long index, long long size)
{
#if OFLOW_CHECK_BOUNDS
    if (index < 0 || index >= size)
        OFLOW_BOUNDS_FAILED(index, size);
#else
    (void)index;
    (void)size;
#endif
}

// The elements of a tensor of N dims: a[i][j].
template <class T, int N> class Accessor {
  public:
    OFLOW_FN Accessor(T *data, const long long *dims, const long long *strides)
        : data_(data), dims_(dims), strides_(strides)
    {
    }
    OFLOW_FN Accessor<T, N - 1> operator[](long long i) const
    {
        check_index(i, dims_[0]);
        return Accessor<T, N - 1>(data_ + i * strides_[0], dims_ + 1, strides_ + 1);
    }
    OFLOW_FN long long size(int dim) const { return dims_[dim]; }

  private:
    T *data_;
    const long long *dims_;
    const long long *strides_;
};

template <class T> class Accessor<T, 1> {
  public:
    OFLOW_FN Accessor(T *data, const long long *dims, const long long *strides)
        : data_(data), dims_(dims), strides_(strides)
    {
    }
    OFLOW_FN T &operator[](long long i) const
    {
        check_index(i, dims_[0]);
        return data_[i * strides_[0]];
    }
    OFLOW_FN long long size(int) const { return dims_[0]; }

  private:
    T *data_;
    const long long *dims_;
    const long long *strides_;
};

// A tensor: address, sizes and strides (in elements). A plain struct, which kernels take as an argument.
template <class T> struct Tensor {
    T *data_;
    long long rank_;
    long long dims_[most_dims];
    long long strides_[most_dims];

    OFLOW_FN T *data() const { return data_; }
    // False for an optional input that was left out.
    OFLOW_FN bool given() const { return rank_ >= 0; }
    OFLOW_FN int rank() const { return (int)rank_; }
    OFLOW_FN long long size(int dim) const { return dims_[dim]; }
    OFLOW_FN long long stride(int dim) const { return strides_[dim]; }
    OFLOW_FN long long numel() const
    {
        long long n = 1;
        for (int d = 0; d < (int)rank_; ++d)
            n *= dims_[d];
        return n;
    }
    // The i-th element in row-major order, whatever the strides are.
    OFLOW_FN T &operator[](long long i) const
    {
        check_index(i, numel());
        long long at = 0;
        for (int d = (int)rank_ - 1; d > 0; --d) {
            at += i % dims_[d] * strides_[d];
            i /= dims_[d];
        }
        return data_[rank_ > 0 ? at + i * strides_[0] : 0];
    }
    // The element at these indices, one for each dim.
    template <class... I> OFLOW_FN T &operator()(I... index) const
    {
        const long long at[] = {(long long)index...};
        long long offset = 0;
        for (int d = 0; d < (int)sizeof...(I); ++d) {
            check_index(at[d], dims_[d]);
            offset += at[d] * strides_[d];
        }
        return data_[offset];
    }
    template <int N> OFLOW_FN Accessor<T, N> accessor() const { return Accessor<T, N>(data_, dims_, strides_); }
};

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
// The first index of this thread of a one-dimensional grid, and from one to the next.
__device__ inline long long first() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline long long step() { return (long long)gridDim.x * blockDim.x; }
#endif

} // namespace oflow

#endif
