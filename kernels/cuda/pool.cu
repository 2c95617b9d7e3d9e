// Pooling: the largest element of windows, where it is, averages, and the gradient of these. A thread has an element of the output.
//   T: the element
//   FORM 0: largest, 1: index of the largest, 2: average, 3: gradient of the average
#include "prelude.cuh"

struct of_pool {
    i64 planes;
    i64 image[3], result[3], kernel[3], stride[3], padding[3], dilation[3];
    // Sizes of the whole, and where the parts that are here begin in it.
    i64 whole_image[3], image_at[3], whole_result[3], result_at[3];
    // Windows of about one size that cover the image; the lists above mean nothing then.
    i32 adaptive;
    // What an average is divided by: 0 elements in the image, 1 with the padding, 2 `fixed`.
    i32 divisor;
    i64 fixed;
};

typedef acc_t<T> A;

// The elements of a window of dim `d`, counted in the whole image: start, start + step, ... below end; with the padding there are `span`.
struct of_window {
    i64 start, end, step, span;
};

OF_FN of_window of_window_at(const of_pool& p, int d, i64 j) {
    of_window w;
    if (p.adaptive) {
        w.start = j * p.whole_image[d] / p.whole_result[d];
        w.end = ((j + 1) * p.whole_image[d] + p.whole_result[d] - 1) / p.whole_result[d];
        w.step = 1;
        w.span = w.end - w.start;
        return w;
    }
    const i64 first = j * p.stride[d], last = first + p.kernel[d] * p.dilation[d];
    w.step = p.dilation[d];
    w.start = first - p.padding[d];
    if (w.start < 0) w.start += (-w.start + w.step - 1) / w.step * w.step;
    w.end = last - p.padding[d];
    if (w.end > p.whole_image[d]) w.end = p.whole_image[d];
    if (w.end < w.start) w.end = w.start;
    const i64 most = p.whole_image[d] + 2 * p.padding[d];
    w.span = (last < most ? last : most) - first;
    return w;
}

OF_FN A of_divisor(const of_pool& p, const of_window* w) {
    if (p.divisor == 2) return (A)p.fixed;
    f64 n = 1;
#pragma unroll
    for (int d = 0; d < 3; d++) n *= (f64)(p.divisor == 1 ? w[d].span : (w[d].end - w[d].start + w[d].step - 1) / w[d].step);
    return (A)n;
}

#if FORM < 3
extern "C" __global__ void __launch_bounds__(256)
#if FORM == 1
pool(const T* x, i64* out, of_pool p) {
#else
pool(const T* x, T* out, of_pool p) {
#endif
    const i64 image = p.image[0] * p.image[1] * p.image[2], result = p.result[0] * p.result[1] * p.result[2];
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.planes * result; i += (i64)gridDim.x * 256) {
        const i64 place = i % result;
        const T* plane = x + i / result * image;
        const i64 at[3] = {place / (p.result[1] * p.result[2]), place / p.result[2] % p.result[1], place % p.result[2]};
        of_window w[3];
#pragma unroll
        for (int d = 0; d < 3; d++) w[d] = of_window_at(p, d, at[d] + p.result_at[d]);
        A best = FORM == 2 ? (A)0 : -(A)OF_INF;
        i64 which = (w[0].start * p.whole_image[1] + w[1].start) * p.whole_image[2] + w[2].start;
        for (i64 a = w[0].start; a < w[0].end; a += w[0].step)
            for (i64 b = w[1].start; b < w[1].end; b += w[1].step)
                for (i64 c = w[2].start; c < w[2].end; c += w[2].step) {
                    const i64 e = ((a - p.image_at[0]) * p.image[1] + b - p.image_at[1]) * p.image[2] + c - p.image_at[2];
                    const A v = of_get<A>(plane[e]);
                    if (FORM == 2) best += v;
                    else if (v > best || v != v) best = v, which = (a * p.whole_image[1] + b) * p.whole_image[2] + c;
                }
#if FORM == 1
        out[i] = which;
#elif FORM == 0
        of_set(out[i], best);
#else
        of_set(out[i], best / of_divisor(p, w));
#endif
    }
}
#else
// The windows that an element is in are looked for among all of the dim that may have it.
extern "C" __global__ void __launch_bounds__(256) pool(const T* dy, T* out, of_pool p) {
    const i64 image = p.image[0] * p.image[1] * p.image[2], result = p.result[0] * p.result[1] * p.result[2];
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.planes * image; i += (i64)gridDim.x * 256) {
        const i64 e = i % image;
        const T* plane = dy + i / image * result;
        const i64 at[3] = {e / (p.image[1] * p.image[2]) + p.image_at[0], e / p.image[2] % p.image[1] + p.image_at[1],
                           e % p.image[2] + p.image_at[2]};
        i64 first[3], last[3];
#pragma unroll
        for (int d = 0; d < 3; d++) {
            if (p.adaptive) {
                first[d] = at[d] * p.whole_result[d] / p.whole_image[d] - 1;
                last[d] = (at[d] + 1) * p.whole_result[d] / p.whole_image[d] + 1;
            } else {
                first[d] = (at[d] + p.padding[d] - p.kernel[d] * p.dilation[d]) / p.stride[d] - 1;
                last[d] = (at[d] + p.padding[d]) / p.stride[d];
            }
            const i64 end = p.result_at[d] + p.result[d];
            if (first[d] < p.result_at[d]) first[d] = p.result_at[d];
            if (last[d] >= end) last[d] = end - 1;
        }
        A sum = (A)0;
        of_window w[3];
        for (i64 a = first[0]; a <= last[0]; a++) {
            w[0] = of_window_at(p, 0, a);
            if (at[0] < w[0].start || at[0] >= w[0].end || (at[0] - w[0].start) % w[0].step) continue;
            for (i64 b = first[1]; b <= last[1]; b++) {
                w[1] = of_window_at(p, 1, b);
                if (at[1] < w[1].start || at[1] >= w[1].end || (at[1] - w[1].start) % w[1].step) continue;
                for (i64 c = first[2]; c <= last[2]; c++) {
                    w[2] = of_window_at(p, 2, c);
                    if (at[2] < w[2].start || at[2] >= w[2].end || (at[2] - w[2].start) % w[2].step) continue;
                    sum += of_get<A>(plane[((a - p.result_at[0]) * p.result[1] + b - p.result_at[1]) * p.result[2] + c - p.result_at[2]]) /
                           of_divisor(p, w);
                }
            }
        }
        of_set(out[i], sum);
    }
}
#endif
