// Resampling of the last dims; see kernels/src/resample.rs, whose formulas stand here again. A thread has an element of the output.
//   T: the element; S: the type of coordinates, f32 or f64
//   FORM 0: elements are moved (M: a type of their size), 1: weighted sums, 2: the gradient of both
#include "prelude.cuh"

enum { REFLECT, REPLICATE, CIRCULAR, NEAREST, NEAREST_EXACT, LINEAR, CUBIC, WINDOWS };

struct of_line {
    i64 image, result, before, count, stride, padding, dilation;
    f64 step;
    i32 rule, aligned;
};
struct of_resample {
    i64 planes;
    of_line line[3];
};

#if FORM == 0
typedef S A;
#else
typedef acc_t<T> A;
#endif

OF_FN i64 of_clamp(i64 v, i64 last) { return v < 0 ? 0 : v > last ? last : v; }
OF_FN i64 of_floor(f32 x) { return (i64)floorf(x); }
OF_FN i64 of_floor(f64 x) { return (i64)floor(x); }

OF_FN S of_coordinate(const of_line& l, i64 o) {
    const S step = (S)l.step;
    if (l.rule == NEAREST || l.aligned) return step * (S)o;
    return step * ((S)o + (S)0.5) - (S)0.5;
}

OF_FN void of_cubic(A t, A* w) {
    const A a = (A)-0.75;
    const A x[4] = {t + (A)1, t, (A)1 - t, (A)2 - t};
#pragma unroll
    for (int k = 0; k < 4; k++)
        w[k] = k == 1 || k == 2 ? ((a + (A)2) * x[k] - (a + (A)3)) * x[k] * x[k] + (A)1
                                : ((a * x[k] - (A)5 * a) * x[k] + (A)8 * a) * x[k] - (A)4 * a;
}

// The elements that element `o` of the result is made of, and their weights.
OF_FN int of_taps(const of_line& l, i64 o, i64* at, A* w) {
    const i64 last = l.image - 1, i = o - l.before;
    w[0] = (A)1;
    switch (l.rule) {
    case REFLECT: at[0] = i < 0 ? -i : i > last ? 2 * last - i : i; return 1;
    case REPLICATE: at[0] = of_clamp(i, last); return 1;
    case CIRCULAR: at[0] = i < 0 ? i + l.image : i > last ? i - l.image : i; return 1;
    case WINDOWS: {
        at[0] = o % l.count * l.stride + o / l.count * l.dilation - l.padding;
        return at[0] >= 0 && at[0] <= last;
    }
    case NEAREST: at[0] = of_clamp(of_floor((f32)of_coordinate(l, o)), last); return 1;
    case NEAREST_EXACT: {
        const S x = of_coordinate(l, o);
        at[0] = of_clamp(of_floor((f32)((f64)(x < 0 ? (S)0 : x) + 0.5)), last);
        return 1;
    }
    case LINEAR: {
        if (l.image == l.result) {
            at[0] = o;
            return 1;
        }
        const S c = of_coordinate(l, o), x = c < 0 ? (S)0 : c;
        const i64 f = of_floor(x);
        at[0] = f > last ? last : f;
        at[1] = at[0] < last ? at[0] + 1 : last;
        const S t = x - (S)at[0];
        w[1] = (A)(t < 0 ? (S)0 : t > 1 ? (S)1 : t);
        w[0] = (A)1 - w[1];
        return 2;
    }
    default: {
        const S x = of_coordinate(l, o);
        const i64 f = of_floor(x), first = f > last ? last : f;
        const S t = x - (S)first;
        of_cubic((A)(t < 0 ? (S)0 : t > 1 ? (S)1 : t), w);
#pragma unroll
        for (int k = 0; k < 4; k++) at[k] = of_clamp(first - 1 + k, last);
        return 4;
    }
    }
}

#if FORM < 2
#if FORM == 0
typedef M E;
#else
typedef T E;
#endif
extern "C" __global__ void __launch_bounds__(256) resample(const E* x, E* out, of_resample p) {
    const of_line *a = p.line, *b = p.line + 1, *c = p.line + 2;
    const i64 image = a->image * b->image * c->image, result = a->result * b->result * c->result;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.planes * result; i += (i64)gridDim.x * 256) {
        const i64 place = i % result;
        const E* plane = x + i / result * image;
        i64 at[3][4];
        A w[3][4];
        const int n0 = of_taps(*a, place / (b->result * c->result), at[0], w[0]);
        const int n1 = of_taps(*b, place / c->result % b->result, at[1], w[1]);
        const int n2 = of_taps(*c, place % c->result, at[2], w[2]);
#if FORM == 0
        out[i] = n0 && n1 && n2 ? plane[(at[0][0] * b->image + at[1][0]) * c->image + at[2][0]] : M();
#else
        A sum = (A)0;
        for (int j = 0; j < n0; j++)
            for (int k = 0; k < n1; k++)
                for (int m = 0; m < n2; m++)
                    sum += w[0][j] * w[1][k] * w[2][m] * of_get<A>(plane[(at[0][j] * b->image + at[1][k]) * c->image + at[2][m]]);
        of_set(out[i], sum);
#endif
    }
}
#else
// Elements of the result in which element `i` of the image may be: from `first` on so many. Windows have one candidate for each of
// their elements.
struct of_candidates {
    i64 first, n;
};
OF_FN of_candidates of_candidates_of(const of_line& l, i64 i) {
    const i64 after = l.result - l.image - l.before;
    i64 lo = i + l.before, hi = lo + 1;
    switch (l.rule) {
    case REFLECT:
        if (i <= l.before) lo = 0;
        if (i >= l.image - 1 - after) hi = l.result;
        break;
    case REPLICATE:
        if (i == 0) lo = 0;
        if (i == l.image - 1) hi = l.result;
        break;
    case CIRCULAR:
        if (i >= l.image - l.before) lo = 0;
        if (i < after) hi = l.result;
        break;
    case WINDOWS: return {0, l.result / (l.count > 0 ? l.count : 1)};
    default:
        lo = 0, hi = l.result;
        if (l.step > 0) {
            // Four elements are looked at, two more for what is rounded.
            if (i > 3) lo = (i64)(((f64)i - 3.5) / l.step) - 2;
            if (i < l.image - 4) hi = (i64)(((f64)i + 4.5) / l.step) + 3;
        }
    }
    if (lo < 0) lo = 0;
    if (hi > l.result) hi = l.result;
    return {lo, hi > lo ? hi - lo : 0};
}

// The weight of element `i` in the candidate; it has none where `found` stays false.
OF_FN A of_weight(const of_line& l, i64 i, const of_candidates& c, i64 k, i64& o, bool& found) {
    o = c.first + k;
    if (l.rule == WINDOWS) {
        const i64 t = i + l.padding - k * l.dilation;
        if (t < 0 || t % l.stride || t / l.stride >= l.count) return (A)0;
        o = k * l.count + t / l.stride;
    }
    i64 at[4];
    A w[4], sum = (A)0;
    const int n = of_taps(l, o, at, w);
    for (int j = 0; j < n; j++)
        if (at[j] == i) sum += w[j], found = true;
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) resample(const T* dy, T* out, of_resample p) {
    const of_line *a = p.line, *b = p.line + 1, *c = p.line + 2;
    const i64 image = a->image * b->image * c->image, result = a->result * b->result * c->result;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.planes * image; i += (i64)gridDim.x * 256) {
        const i64 place = i % image;
        const T* plane = dy + i / image * result;
        const i64 at[3] = {place / (b->image * c->image), place / c->image % b->image, place % c->image};
        const of_candidates c0 = of_candidates_of(*a, at[0]), c1 = of_candidates_of(*b, at[1]), c2 = of_candidates_of(*c, at[2]);
        A sum = (A)0;
        for (i64 j = 0; j < c0.n; j++) {
            i64 o[3];
            bool found0 = false;
            const A w0 = of_weight(*a, at[0], c0, j, o[0], found0);
            if (!found0) continue;
            for (i64 k = 0; k < c1.n; k++) {
                bool found1 = false;
                const A w1 = of_weight(*b, at[1], c1, k, o[1], found1);
                if (!found1) continue;
                for (i64 m = 0; m < c2.n; m++) {
                    bool found2 = false;
                    const A w2 = of_weight(*c, at[2], c2, m, o[2], found2);
                    if (found2) sum += w0 * w1 * w2 * of_get<A>(plane[(o[0] * b->result + o[1]) * c->result + o[2]]);
                }
            }
        }
        of_set(out[i], sum);
    }
}
#endif
