// oflow: flags = --use_fast_math
#include <cstdint>

__global__ void cube(const float *x, float *y, int64_t n)
{
    for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
        y[i] = x[i] * x[i] * x[i];
}

void cube_on_gpu(const float *x, float *y, int64_t n, void *stream)
{
    cube<<<(n + 255) / 256, 256, 0, static_cast<cudaStream_t>(stream)>>>(x, y, n);
}
