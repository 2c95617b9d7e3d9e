// What every kernel file of oflow starts from, complete without any header of CUDA's: the run-time compiler has none.
// Under OF_EMULATOR the same files are C++ (emulator.h comes first) and inline PTX gives way to plain code.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
// Halves are storage; arithmetic is done in f32.
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
// A bool is one byte, 0 or 1.
struct b8 { u8 bits; };
// 8-bit floats are stored and cast only.
struct f8_e4m3fn { u8 bits; };
struct f8_e5m2 { u8 bits; };
// Complex numbers; their arithmetic is in complex.cuh.
template <typename R> struct of_cplx { R re, im; };
typedef of_cplx<f32> c64;
typedef of_cplx<f64> c128;

#define OF_FN static __device__ __forceinline__

#ifdef OF_EMULATOR
#define OF_DYNAMIC_SHARED(type, name) type* name = (type*)of_emu_dynamic_shared()
#else
#define OF_DYNAMIC_SHARED(type, name)                                                                                  \
    extern __shared__ __align__(16) u8 of_dynamic_shared_[];                                                           \
    type* name = (type*)of_dynamic_shared_
#endif

#define OF_INF __uint_as_float(0x7f800000u)
#define OF_NAN __uint_as_float(0x7fffffffu)
#define OF_INF64 __longlong_as_double(0x7ff0000000000000LL)
#define OF_NAN64 __longlong_as_double(0x7fffffffffffffffLL)

// ---- halves ---------------------------------------------------------------------------------------------------------

#ifdef OF_EMULATOR
OF_FN f32 of_half_to_float(u16 h) {
    u32 sign = (u32)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
    if (exponent == 31u) return __uint_as_float(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0u) {
        f32 value = (f32)fraction * 5.9604644775390625e-8f; // 2^-24
        return sign ? -value : value;
    }
    return __uint_as_float(sign | (exponent + 112u) << 23 | fraction << 13);
}
OF_FN u16 of_float_to_half(f32 f) {
    u32 u = __float_as_uint(f), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (u16)(sign | 0x7fffu);
    if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        // Subnormal: counted in steps of 2^-24, rounded to even by the float addition.
        f32 counted = __uint_as_float(magnitude) + 0.5f;
        return (u16)(sign | (__float_as_uint(counted) - 0x3f000000u));
    }
    u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (u16)(sign | (rounded - 0x38000000u) >> 13);
}
#else
OF_FN f32 of_half_to_float(u16 h) {
    f32 f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
OF_FN u16 of_float_to_half(f32 f) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
#endif
OF_FN f32 of_bfloat_to_float(u16 h) { return __uint_as_float((u32)h << 16); }
OF_FN u16 of_float_to_bfloat(f32 f) {
#if defined(OF_EMULATOR)
    u32 u = __float_as_uint(f);
    if (f != f) return (u16)(u >> 16 | 0x40u);
    return (u16)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
#else
    u16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#endif
}
// Two floats as a pair of halves in one register, `lo` in the lower 16 bits.
OF_FN u32 of_pack2(f32 lo, f32 hi, f16) {
#if defined(OF_EMULATOR)
    return (u32)of_float_to_half(hi) << 16 | of_float_to_half(lo);
#else
    u32 d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
    return d;
#endif
}
OF_FN u32 of_pack2(f32 lo, f32 hi, bf16) {
#if defined(OF_EMULATOR)
    return (u32)of_float_to_bfloat(hi) << 16 | of_float_to_bfloat(lo);
#else
    u32 d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
    return d;
#endif
}

// ---- 8-bit floats: as `kernels/src/dtype/f8.rs` ------------------------------------------------------------------------

// The magnitude of a float below the format's overflow, rounded to nearest even.
OF_FN u32 of_float_to_f8(u32 magnitude, u32 fraction, u32 bias) {
    const u32 shift = 23u - fraction, rebase = 127u - bias;
    if (magnitude < (rebase + 1u) << 23) {
        const u32 step = (rebase + 1u + shift) << 23;
        return __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(step)) - step;
    }
    return (magnitude - (rebase << 23) + ((1u << (shift - 1u)) - 1u) + (magnitude >> shift & 1u)) >> shift;
}
OF_FN u8 of_float_to_e4m3fn(f32 f) {
    const u32 u = __float_as_uint(f), magnitude = u & 0x7fffffffu;
    const u32 to = magnitude > 0x7f800000u ? 0x7fu : magnitude >= 0x43e00000u ? 0x7eu : of_float_to_f8(magnitude, 3u, 7u);
    return (u8)((u >> 24 & 0x80u) | to);
}
OF_FN u8 of_float_to_e5m2(f32 f) {
    const u32 u = __float_as_uint(f), magnitude = u & 0x7fffffffu;
    const u32 to = magnitude > 0x7f800000u ? 0x7fu : magnitude >= 0x47800000u ? 0x7cu : of_float_to_f8(magnitude, 2u, 15u);
    return (u8)((u >> 24 & 0x80u) | to);
}
OF_FN f32 of_e4m3fn_to_float(u8 x) {
    const u32 magnitude = x & 0x7fu;
    const f32 number = __uint_as_float(magnitude << 20) * __uint_as_float(247u << 23);
    const u32 bits = magnitude == 0x7fu ? 0x7ff00000u : __float_as_uint(number);
    return __uint_as_float(bits | (u32)(x & 0x80u) << 24);
}

// ---- elements -------------------------------------------------------------------------------------------------------

// The type that an element is computed in: f32 for halves, f64 for f64, i64 for integers and bools.
template <typename T> struct of_acc_of { typedef i64 type; };
template <> struct of_acc_of<f16> { typedef f32 type; };
template <> struct of_acc_of<bf16> { typedef f32 type; };
template <> struct of_acc_of<f32> { typedef f32 type; };
template <> struct of_acc_of<f64> { typedef f64 type; };
template <> struct of_acc_of<f8_e4m3fn> { typedef f32 type; };
template <> struct of_acc_of<f8_e5m2> { typedef f32 type; };
template <typename T> using acc_t = typename of_acc_of<T>::type;

// Element to any arithmetic type: `of_get<f32>(x)`.
template <typename A> OF_FN A of_get(f16 x) { return (A)of_half_to_float(x.bits); }
template <typename A> OF_FN A of_get(bf16 x) { return (A)of_bfloat_to_float(x.bits); }
template <typename A> OF_FN A of_get(f32 x) { return (A)x; }
template <typename A> OF_FN A of_get(f64 x) { return (A)x; }
template <typename A> OF_FN A of_get(b8 x) { return (A)x.bits; }
template <typename A> OF_FN A of_get(u8 x) { return (A)x; }
template <typename A> OF_FN A of_get(i8 x) { return (A)x; }
template <typename A> OF_FN A of_get(i32 x) { return (A)x; }
template <typename A> OF_FN A of_get(i64 x) { return (A)x; }
template <typename A> OF_FN A of_get(i16 x) { return (A)x; }
template <typename A> OF_FN A of_get(u16 x) { return (A)x; }
template <typename A> OF_FN A of_get(u32 x) { return (A)x; }
template <typename A> OF_FN A of_get(f8_e4m3fn x) { return (A)of_e4m3fn_to_float(x.bits); }
template <typename A> OF_FN A of_get(f8_e5m2 x) { return (A)of_half_to_float((u16)(x.bits << 8)); }

// Floats to integers as Rust's `as`: truncated, saturated, NaN gives 0; integers to narrower ones wrap.
OF_FN i64 of_to_i64(f64 x) {
    return x != x ? 0 : x >= 9223372036854775808.0 ? 0x7fffffffffffffffLL
                    : x <= -9223372036854775808.0  ? (-0x7fffffffffffffffLL - 1)
                                                   : (i64)x;
}
OF_FN i64 of_to_i64(f32 x) {
    return x != x ? 0 : x >= 9223372036854775808.0f ? 0x7fffffffffffffffLL
                    : x <= -9223372036854775808.0f  ? (-0x7fffffffffffffffLL - 1)
                                                    : (i64)x;
}
OF_FN i64 of_to_i64(i64 x) { return x; }
// Into low..=high. 2^31 - 1 becomes 2^31 in f32, which still tells what is beyond.
template <typename F> OF_FN i32 of_saturated(F x, i32 low, i32 high) {
    return x != x ? 0 : x >= (F)high ? high : x <= (F)low ? low : (i32)x;
}
OF_FN i32 of_to_i32(f64 x, i32 low, i32 high) { return of_saturated(x, low, high); }
OF_FN i32 of_to_i32(f32 x, i32 low, i32 high) { return of_saturated(x, low, high); }
OF_FN i32 of_to_i32(i64 x, i32, i32) { return (i32)x; }
template <typename F> OF_FN u32 of_to_u32(F x) {
    const i64 i = of_to_i64(x);
    return i < 0 ? 0u : i > 0xffffffffLL ? 0xffffffffu : (u32)i;
}
OF_FN u32 of_to_u32(i64 x) { return (u32)x; }
// To f32 with one rounding only.
OF_FN f32 of_to_f32(f64 x) { return (f32)x; }
OF_FN f32 of_to_f32(f32 x) { return x; }
OF_FN f32 of_to_f32(i64 x) { return (f32)x; }

// Any arithmetic type to an element: `T y; of_set(y, value)`.
template <typename A> OF_FN void of_set(f16& to, A x) { to.bits = of_float_to_half(of_to_f32(x)); }
template <typename A> OF_FN void of_set(bf16& to, A x) { to.bits = of_float_to_bfloat(of_to_f32(x)); }
template <typename A> OF_FN void of_set(f32& to, A x) { to = of_to_f32(x); }
template <typename A> OF_FN void of_set(f64& to, A x) { to = (f64)x; }
template <typename A> OF_FN void of_set(b8& to, A x) { to.bits = x != (A)0; }
template <typename A> OF_FN void of_set(u8& to, A x) { to = (u8)of_to_i32(x, 0, 255); }
template <typename A> OF_FN void of_set(i8& to, A x) { to = (i8)of_to_i32(x, -128, 127); }
template <typename A> OF_FN void of_set(i32& to, A x) { to = of_to_i32(x, -0x7fffffff - 1, 0x7fffffff); }
template <typename A> OF_FN void of_set(i64& to, A x) { to = of_to_i64(x); }
template <typename A> OF_FN void of_set(i16& to, A x) { to = (i16)of_to_i32(x, -32768, 32767); }
template <typename A> OF_FN void of_set(u16& to, A x) { to = (u16)of_to_i32(x, 0, 65535); }
template <typename A> OF_FN void of_set(u32& to, A x) { to = of_to_u32(x); }
template <typename A> OF_FN void of_set(f8_e4m3fn& to, A x) { to.bits = of_float_to_e4m3fn(of_to_f32(x)); }
template <typename A> OF_FN void of_set(f8_e5m2& to, A x) { to.bits = of_float_to_e5m2(of_to_f32(x)); }

// N elements that are loaded and stored at once; 16 bytes at most, aligned to their size.
template <typename T, int N> struct __align__(sizeof(T) * N) of_vec { T at[N]; };
// As one word: vectors go to and from global memory by one instruction.
template <int BYTES> struct of_word;
template <> struct of_word<1> { typedef u8 type; };
template <> struct of_word<2> { typedef u16 type; };
template <> struct of_word<4> { typedef u32 type; };
template <> struct of_word<8> { typedef uint2 type; };
template <> struct of_word<16> { typedef uint4 type; };
template <typename T, int N> union of_vec_word {
    of_vec<T, N> vec;
    typename of_word<(int)sizeof(T) * N>::type word;
    __device__ __forceinline__ of_vec_word() {}
};
template <typename W> OF_FN void of_store_word(void* to, W word) { *(W*)to = word; }
#ifndef OF_EMULATOR
// Said in PTX, because the compiler sometimes takes a store of 16 bytes apart.
OF_FN void of_store_word(void* to, uint2 w) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(w.x), "r"(w.y) : "memory");
}
OF_FN void of_store_word(void* to, uint4 w) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w) : "memory");
}
#endif
// N elements of global memory, aligned to the vector's size.
template <typename T, int N> OF_FN of_vec<T, N> of_load(const T* from) {
    of_vec_word<T, N> x;
    x.word = *(const typename of_word<(int)sizeof(T) * N>::type*)from;
    return x.vec;
}
template <typename T, int N> OF_FN void of_store(T* to, const of_vec<T, N>& value) {
    of_vec_word<T, N> x;
    x.vec = value;
    of_store_word(to, x.word);
}
// How many elements of T are 16 bytes.
template <typename T> struct of_width { static const int value = 16 / (int)sizeof(T); };

// ---- strided tensors ------------------------------------------------------------------------------------------------

#define OF_MAX_RANK 8
// Sizes and strides (in elements) of a tensor, outermost first. The host merges dims where it can, so `rank` is small.
struct of_shape { i32 rank; i32 pad; i64 size[OF_MAX_RANK]; };
struct of_strides { i64 at[OF_MAX_RANK]; };

// The offset of row-major element `i` of a tensor of that shape in memory with those strides.
OF_FN i64 of_offset(u64 i, const of_shape& shape, const of_strides& strides) {
    i64 offset = 0;
    for (int d = shape.rank - 1; d > 0; d--) {
        u64 size = (u64)shape.size[d], next = i / size;
        offset += (i64)(i - next * size) * strides.at[d];
        i = next;
    }
    return offset + (shape.rank > 0 ? (i64)i * strides.at[0] : 0);
}

// ---- blocks and warps -----------------------------------------------------------------------------------------------

#define OF_FULL 0xffffffffu

struct of_sum_op { template <typename A> static __device__ __forceinline__ A of(A a, A b) { return a + b; } };
// NaN wins, as in the other backends.
struct of_max_op { template <typename A> static __device__ __forceinline__ A of(A a, A b) { return a > b || a != a ? a : b; } };
struct of_min_op { template <typename A> static __device__ __forceinline__ A of(A a, A b) { return a < b || a != a ? a : b; } };

// The reduction over a warp, on every lane, in an order that depends on nothing.
template <typename Op, typename A> OF_FN A of_warp_reduce(A x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x = Op::of(x, __shfl_xor_sync(OF_FULL, x, step));
    return x;
}
// The reduction over a block of whole warps, on every thread. `room` is shared memory for one value a warp (32), free to
// be used again after the next barrier.
template <typename Op, typename A> OF_FN A of_block_reduce(A x, A identity, A* room) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    x = of_warp_reduce<Op>(x);
    if (warps == 1) return x;
    __syncthreads();
    if (lane == 0) room[warp] = x;
    __syncthreads();
    x = lane < warps ? room[lane] : identity;
    return of_warp_reduce<Op>(x);
}

// ---- errors that depend on values -----------------------------------------------------------------------------------

// Written by the first thread that finds a value out of range; the host reads it where it lies (mapped host memory) and
// names the op and the line of the instruction `ticket`.
struct of_fault { u32 claimed; u32 ready; u64 ticket; i64 value; i64 low; i64 high; };
OF_FN void of_report(of_fault* fault, u64 ticket, i64 value, i64 low, i64 high) {
    if (atomicCAS_system(&fault->claimed, 0u, 1u) != 0u) return;
    fault->ticket = ticket;
    fault->value = value;
    fault->low = low;
    fault->high = high;
    __threadfence_system();
    atomicExch_system(&fault->ready, 1u);
}

// ---- tensor cores and asynchronous copies ---------------------------------------------------------------------------

// The 32-bit address of shared memory that PTX takes.
OF_FN u32 of_shared_address(const void* p) {
#ifdef OF_EMULATOR
    return 0;
#else
    u32 a;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p));
    return a;
#endif
}

// The same number, but the compiler does not know that: what is worked out from it inside a loop is worked out there, and
// holds no registers meanwhile.
OF_FN int of_opaque(int x) {
#ifndef OF_EMULATOR
    asm volatile("" : "+r"(x));
#endif
    return x;
}

// A place in shared memory as a number that is counted in bytes: sums with constants become part of the instruction.
#ifdef OF_EMULATOR
typedef u64 of_shared_t;
OF_FN of_shared_t of_shared(const void* p) { return (u64)p; }
#else
typedef u32 of_shared_t;
OF_FN of_shared_t of_shared(const void* p) { return of_shared_address(p); }
#endif

// d = a b + c for one warp: a 16x16 (row), b 16x8 (column), c and d 16x8 in f32, spread over the lanes as PTX's
// mma.sync.m16n8k16 says.
OF_FN void of_mma(f32 d[4], const u32 a[4], const u32 b[2], const f32 c[4], bf16) {
#ifdef OF_EMULATOR
    of_emu_mma_m16n8k16_f32_bf16(d, a, b, c);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                   "f"(c[3]));
#endif
}
OF_FN void of_mma(f32 d[4], const u32 a[4], const u32 b[2], const f32 c[4], f16) {
#ifdef OF_EMULATOR
    of_emu_mma_m16n8k16_f32_f16(d, a, b, c);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                   "f"(c[3]));
#endif
}
// Loads 8x8 matrices of 16-bit elements from shared memory; lane i gives the address of row i % 8 of matrix i / 8.
OF_FN void of_ldmatrix4(u32 r[4], const void* row) {
#ifdef OF_EMULATOR
    of_emu_ldmatrix_x4(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(of_shared_address(row)) : "memory");
#endif
}
OF_FN void of_ldmatrix4_trans(u32 r[4], const void* row) {
#ifdef OF_EMULATOR
    of_emu_ldmatrix_x4_trans(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(of_shared_address(row)) : "memory");
#endif
}
OF_FN void of_ldmatrix2(u32 r[2], const void* row) {
#ifdef OF_EMULATOR
    of_emu_ldmatrix_x2(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(of_shared_address(row)) : "memory");
#endif
}
OF_FN void of_ldmatrix2_trans(u32 r[2], const void* row) {
#ifdef OF_EMULATOR
    of_emu_ldmatrix_x2_trans(r, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(of_shared_address(row)) : "memory");
#endif
}
// The same for a place as a number.
OF_FN void of_ldmatrix4(u32 r[4], of_shared_t row) {
#ifdef OF_EMULATOR
    of_emu_ldmatrix_x4(r, (const void*)row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
#endif
}
OF_FN void of_ldmatrix4_trans(u32 r[4], of_shared_t row) {
#ifdef OF_EMULATOR
    of_emu_ldmatrix_x4_trans(r, (const void*)row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
#endif
}
// Copies 4 bytes from global to shared memory without waiting; zeros where `valid` is false.
OF_FN void of_copy_async4(void* to, const void* from, bool valid) {
#ifdef OF_EMULATOR
    of_emu_copy_async(to, from, 4, valid);
#else
    int bytes = valid ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(of_shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
#endif
}
// Copies 16 bytes from global to shared memory without waiting; zeros where `valid` is false.
OF_FN void of_copy_async16(void* to, const void* from, bool valid) {
#ifdef OF_EMULATOR
    of_emu_copy_async(to, from, 16, valid);
#else
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(of_shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
#endif
}
OF_FN void of_copy_async_commit() {
#ifdef OF_EMULATOR
    of_emu_copy_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most N of this thread's latest groups are on their way.
template <int N> OF_FN void of_copy_async_wait() {
#ifdef OF_EMULATOR
    of_emu_copy_wait(N);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
OF_FN f32 of_fast_exp2(f32 x) {
#ifdef OF_EMULATOR
    return exp2f(x);
#else
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
