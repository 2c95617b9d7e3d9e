// CUDA C++ as plain C++17 for g++ on a machine without a GPU: the kernel files of this folder, unchanged, become a shared
// object that the emulated driver (`emulator/driver`) loads and runs. It comes before the program's text.
//
// A block runs on one OS thread; each of its threads is a fiber. A fiber that ends without having waited hands its stack
// to the next thread, so a kernel without barriers never switches. Barriers and warp collectives are rendezvous: the last
// to arrive works out what everybody gets. When nobody can run and not all have ended the block is stuck, and the launch
// fails with a text that says who waits for what, where a GPU would hang or be wrong.
//
// No header is included, so that a program compiles in a few hundred milliseconds; all names start with `of_emu_` or are
// CUDA's. Here: words, vectors, state and fibers, barriers, warp collectives, the run of a grid. emulator_tensor.h has tensor
// cores and asynchronous copies, emulator_math.h loads, atomics and mathematics.
#pragma once

#define OF_EMU_INLINE static inline __attribute__((always_inline))
#define OF_EMU_APART static __attribute__((noipa))

// ---- words of the language ------------------------------------------------------------------------------------------

// `__global__` is spelled OF_EMU_GLOBAL and `__launch_bounds__` OF_EMU_BOUNDS while the program is preprocessed, so that
// the driver finds the kernels in what is left; then both vanish.
#ifndef OF_EMU_KEEP_WORDS
#define __global__
#define __launch_bounds__(...)
#else
#define __global__ OF_EMU_GLOBAL
#define __launch_bounds__(...) OF_EMU_BOUNDS((__VA_ARGS__))
#endif
#define __device__
#define __host__
// A block's fibers share one OS thread, so what is local to the thread is shared by the block.
#define __shared__ static thread_local
#define __constant__
#define __grid_constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH__ 900
#define __CUDACC_RTC__ 1
#define assert(condition) ((condition) ? (void)0 : of_emu_fail(OF_EMU_ASSERT, "assertion failed: " #condition))

typedef unsigned long size_t;
extern "C" {
int printf(const char*, ...);
int snprintf(char*, size_t, const char*, ...);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

// ---- vectors --------------------------------------------------------------------------------------------------------

#define OF_EMU_VECTORS(type, name, align2, align4)                                                                     \
    struct name##1 { type x; };                                                                                        \
    struct __attribute__((aligned(align2))) name##2 { type x, y; };                                                    \
    struct name##3 { type x, y, z; };                                                                                  \
    struct __attribute__((aligned(align4))) name##4 { type x, y, z, w; };                                              \
    OF_EMU_INLINE name##1 make_##name##1(type x) { return {x}; }                                                       \
    OF_EMU_INLINE name##2 make_##name##2(type x, type y) { return {x, y}; }                                            \
    OF_EMU_INLINE name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                 \
    OF_EMU_INLINE name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
OF_EMU_VECTORS(signed char, char, 2, 4)
OF_EMU_VECTORS(unsigned char, uchar, 2, 4)
OF_EMU_VECTORS(short, short, 4, 8)
OF_EMU_VECTORS(unsigned short, ushort, 4, 8)
OF_EMU_VECTORS(int, int, 8, 16)
OF_EMU_VECTORS(unsigned, uint, 8, 16)
OF_EMU_VECTORS(long, long, 16, 16)
OF_EMU_VECTORS(unsigned long, ulong, 16, 16)
OF_EMU_VECTORS(long long, longlong, 16, 16)
OF_EMU_VECTORS(unsigned long long, ulonglong, 16, 16)
OF_EMU_VECTORS(float, float, 8, 16)
OF_EMU_VECTORS(double, double, 16, 16)
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// ---- state and fibers -----------------------------------------------------------------------------------------------

// CUresult values that a launch may end with.
enum { OF_EMU_ILLEGAL_ADDRESS = 700, OF_EMU_ASSERT = 710, OF_EMU_MISALIGNED = 716, OF_EMU_LAUNCH_FAILED = 719 };

// The layout of an arena, one per OS thread that runs kernels, aligned to its size so that a fiber finds it from its
// stack pointer. Stacks are not a power of two apart: equal variables of many fibers would fall in one cache set.
#define OF_EMU_ARENA (128ul << 20)
#define OF_EMU_SHARED_AT (512ul << 10)
#define OF_EMU_STACKS_AT (1ul << 20)
#define OF_EMU_STACK (98304ul + 192)
#define OF_EMU_COPIES_AT (OF_EMU_STACKS_AT + 1024 * OF_EMU_STACK)
#define OF_EMU_CANARY 0x0f10c0de5afe57acul
#define OF_EMU_PENDING 8

typedef void (*of_emu_combine)(void** lanes, unsigned mask);
// A warp collective some of whose lanes have arrived.
struct of_emu_pending {
    of_emu_combine combine;
    unsigned mask, arrived;
    void* lanes[32];
};
struct of_emu_warp {
    unsigned exists, ended, ready, at_barrier;
    of_emu_pending pending[OF_EMU_PENDING];
};
struct of_emu_thread {
    void* sp;
    uint3 index;
};
// Asynchronous copies of one thread that are under way, oldest first, and the number of its open group.
#define OF_EMU_COPIES 256
struct of_emu_copy {
    void* to;
    const void* from;
    unsigned bytes, group;
};
struct of_emu_copies {
    unsigned count, group;
    of_emu_copy at[OF_EMU_COPIES];
};
// What the driver passes to `of_emu_run`; emulator/driver/src/driver/launch.rs has the same struct.
struct of_emu_launch {
    void* arena;
    unsigned grid[3], block[3];
    unsigned shared, order;
    char* error;
    size_t error_size;
    void (*fault)(void);
    void* statics; // the __shared__ variables of this program on this thread, and their size; null if not known
    size_t statics_size;
};
struct of_emu_state {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    unsigned current, next, count, alive, workers, ready_warps, order;
    unsigned copies_used;
    unsigned barrier_waiting, barrier_kind, barrier_sum, barrier_result;
    uint3 next_index;
    int code;
    void (*call)(void**);
    void** params;
    void* host_sp;
    char* error;
    size_t error_size;
    of_emu_thread threads[1024];
    of_emu_warp warps[32];
};
static_assert(sizeof(of_emu_state) <= OF_EMU_SHARED_AT, "the state must fit before shared memory");
static_assert(OF_EMU_COPIES_AT + 1024 * sizeof(of_emu_copies) <= OF_EMU_ARENA, "all must fit in the arena");

#if defined(__x86_64__)
OF_EMU_INLINE char* of_emu_stack_pointer() {
    char* sp;
    asm("mov %%rsp, %0" : "=r"(sp)); // not volatile: the arena of a fiber never changes
    return sp;
}
// Saves the callee-saved registers and the stack pointer, and goes on where `to` was saved.
__attribute__((naked, noipa)) static void of_emu_switch(void** save, void* to) {
    asm volatile("push %%rbp; push %%rbx; push %%r12; push %%r13; push %%r14; push %%r15\n"
                 "mov %%rsp, (%%rdi); mov %%rsi, %%rsp\n"
                 "pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbx; pop %%rbp; ret" ::: "memory");
}
OF_EMU_INLINE void* of_emu_new_stack(char* top, void (*entry)(void)) {
    void** sp = (void**)((size_t)top & ~15ul);
    *--sp = 0; // where the return address of `entry` would be: its stack is then aligned as after a call
    *--sp = (void*)entry;
    for (int i = 0; i < 6; i++) *--sp = 0;
    return sp;
}
#elif defined(__aarch64__)
OF_EMU_INLINE char* of_emu_stack_pointer() { return (char*)__builtin_frame_address(0); }
asm(".text\n.p2align 2\nof_emu_switch_asm:\n"
    "sub sp, sp, #176\n"
    "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #176\nret\n");
extern "C" void of_emu_switch_asm(void** save, void* to);
OF_EMU_APART void of_emu_switch(void** save, void* to) { of_emu_switch_asm(save, to); }
OF_EMU_INLINE void* of_emu_new_stack(char* top, void (*entry)(void)) {
    char* sp = (char*)(((size_t)top & ~15ul) - 176);
    memset(sp, 0, 176);
    *(void**)(sp + 88) = (void*)entry;
    return sp;
}
#else
#error "the CUDA emulator knows how to switch fibers on x86-64 and aarch64 only"
#endif

OF_EMU_INLINE of_emu_state* of_emu_here() { return (of_emu_state*)((size_t)of_emu_stack_pointer() & ~(OF_EMU_ARENA - 1)); }
OF_EMU_INLINE void* of_emu_dynamic_shared() { return (char*)of_emu_here() + OF_EMU_SHARED_AT; }
#define threadIdx (of_emu_here()->thread)
#define blockIdx (of_emu_here()->block)
#define blockDim (of_emu_here()->block_dim)
#define gridDim (of_emu_here()->grid_dim)
static constexpr int warpSize = 32;

// Ends the launch with `code` and a text that names the thread; the other fibers are left where they are.
OF_EMU_APART void of_emu_fail(int code, const char* text) {
    of_emu_state* s = of_emu_here();
    s->code = code;
    snprintf(s->error, s->error_size, "%s (block %u,%u,%u thread %u,%u,%u)", text, s->block.x, s->block.y, s->block.z,
             s->thread.x, s->thread.y, s->thread.z);
    void* dead;
    of_emu_switch(&dead, s->host_sp);
    __builtin_unreachable();
}
// Where the driver's signal handler lets a fiber go on that touched memory it may not.
OF_EMU_APART void of_emu_fault() { of_emu_fail(OF_EMU_ILLEGAL_ADDRESS, "the kernel touched memory that is not mapped"); }

OF_EMU_APART void of_emu_stuck(of_emu_state* s) {
    char text[400];
    unsigned barrier = 0, collective = 0, first = ~0u;
    const of_emu_pending* at = 0;
    for (unsigned w = 0; w < (s->count + 31) / 32; w++) {
        barrier += __builtin_popcount(s->warps[w].at_barrier);
        for (int i = 0; i < OF_EMU_PENDING; i++) {
            const of_emu_pending* p = &s->warps[w].pending[i];
            collective += __builtin_popcount(p->arrived);
            if (p->arrived && !at) at = p, first = w;
        }
    }
    int n = snprintf(text, sizeof text, "the block is stuck: %u threads wait at __syncthreads, %u in warp collectives, %u have ended",
                     barrier, collective, s->count - s->alive);
    if (at)
        snprintf(text + n, sizeof text - n, "; in warp %u lanes %08x arrived of mask %08x, lanes %08x of the warp have ended",
                 first, at->arrived, at->mask, s->warps[first].ended);
    of_emu_fail(OF_EMU_LAUNCH_FAILED, text);
}

static void of_emu_fiber();
OF_EMU_INLINE char* of_emu_slot(of_emu_state* s, unsigned worker) { return (char*)s + OF_EMU_STACKS_AT + worker * OF_EMU_STACK; }
// A new fiber for the threads that have not begun.
OF_EMU_INLINE void* of_emu_new_worker(of_emu_state* s) {
    char* low = of_emu_slot(s, s->workers++);
    *(size_t*)low = OF_EMU_CANARY;
    return of_emu_new_stack(low + OF_EMU_STACK, of_emu_fiber);
}
OF_EMU_INLINE void* of_emu_resume(of_emu_state* s, unsigned w) {
    unsigned ready = s->warps[w].ready;
    unsigned lane = s->order & 1 ? 31 - __builtin_clz(ready) : __builtin_ctz(ready);
    s->warps[w].ready = ready & ~(1u << lane);
    if (!s->warps[w].ready) s->ready_warps &= ~(1u << w);
    unsigned t = w * 32 + lane;
    s->current = t;
    s->thread = s->threads[t].index;
    return s->threads[t].sp;
}
// Where to go on: the same warp, else a thread that has not begun, else another warp; `order` turns the choices round.
OF_EMU_INLINE void* of_emu_next(of_emu_state* s, unsigned warp) {
    if (s->order & 2) {
        if (s->next < s->count) return of_emu_new_worker(s);
        if (s->ready_warps) return of_emu_resume(s, 31 - __builtin_clz(s->ready_warps));
        return 0;
    }
    if (s->warps[warp].ready) return of_emu_resume(s, warp);
    if (s->next < s->count) return of_emu_new_worker(s);
    if (s->ready_warps) return of_emu_resume(s, __builtin_ctz(s->ready_warps));
    return 0;
}
// The current thread has said what it waits for; returns when somebody made it ready.
OF_EMU_APART void of_emu_wait(of_emu_state* s) {
    unsigned t = s->current;
    void* to = of_emu_next(s, t / 32);
    if (!to) of_emu_stuck(s);
    of_emu_switch(&s->threads[t].sp, to);
}

// ---- barriers -------------------------------------------------------------------------------------------------------

OF_EMU_INLINE void of_emu_release(of_emu_state* s, unsigned self) {
    s->barrier_result = s->barrier_sum;
    s->barrier_waiting = s->barrier_sum = 0;
    for (unsigned w = 0; w * 32 < s->count; w++) {
        unsigned waiting = s->warps[w].at_barrier;
        s->warps[w].at_barrier = 0;
        if (self / 32 == w) waiting &= ~(1u << self % 32);
        s->warps[w].ready |= waiting;
        if (s->warps[w].ready) s->ready_warps |= 1u << w;
    }
}
// A barrier of the whole block; threads that have ended count as arrived, as on the GPU. Returns the sum of `value`.
OF_EMU_APART unsigned of_emu_barrier(unsigned kind, unsigned value) {
    of_emu_state* s = of_emu_here();
    if (s->barrier_waiting && s->barrier_kind != kind)
        of_emu_fail(OF_EMU_LAUNCH_FAILED, "threads of one block wait at different kinds of __syncthreads");
    s->barrier_kind = kind;
    s->barrier_sum += value;
    s->warps[s->current / 32].at_barrier |= 1u << s->current % 32;
    if (++s->barrier_waiting == s->alive)
        of_emu_release(s, s->current);
    else
        of_emu_wait(s);
    return s->barrier_result;
}
OF_EMU_INLINE void __syncthreads() { of_emu_barrier(0, 0); }
OF_EMU_INLINE int __syncthreads_count(int p) { return (int)of_emu_barrier(1, p != 0); }
OF_EMU_INLINE int __syncthreads_or(int p) { return of_emu_barrier(2, p != 0) != 0; }
OF_EMU_INLINE int __syncthreads_and(int p) { return of_emu_barrier(3, p == 0) == 0; }
// Fibers see each other's writes in program order; between blocks a full fence.
OF_EMU_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
OF_EMU_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
OF_EMU_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// What one thread does: begins threads until none is left, then leaves the stack for good.
static void of_emu_fiber() {
    of_emu_state* s = of_emu_here();
    unsigned worker = s->workers - 1;
    for (;;) {
        unsigned t = s->current = s->next++;
        s->thread = s->threads[t].index = s->next_index;
        if (++s->next_index.x == s->block_dim.x) {
            s->next_index.x = 0;
            if (++s->next_index.y == s->block_dim.y) s->next_index.y = 0, s->next_index.z++;
        }
        s->call(s->params);
        t = s->current;
        if (*(volatile size_t*)of_emu_slot(s, worker) != OF_EMU_CANARY)
            of_emu_fail(OF_EMU_LAUNCH_FAILED, "a thread used more stack than the emulator has");
        s->warps[t / 32].ended |= 1u << t % 32;
        if (--s->alive == s->barrier_waiting && s->alive) of_emu_release(s, ~0u);
        if (!(s->order & 2) && s->warps[t / 32].ready) {
            // Lanes of this warp first, so that a warp's data stays in cache.
        } else if (s->next < s->count) {
            continue;
        }
        void* to = s->alive ? of_emu_next(s, t / 32) : s->host_sp;
        if (!to) of_emu_stuck(s);
        void* dead;
        of_emu_switch(&dead, to);
    }
}

// ---- warp collectives -----------------------------------------------------------------------------------------------

// The calling lane arrives at `combine` with the lanes of `mask`; the last one runs it over what all brought. Lanes that
// the block never had count for nothing; lanes that have ended leave the warp stuck, as CUDA forbids naming them.
OF_EMU_APART void of_emu_collective(of_emu_combine combine, unsigned mask, void* mine) {
    of_emu_state* s = of_emu_here();
    unsigned w = s->current / 32, bit = 1u << s->current % 32;
    of_emu_warp* warp = &s->warps[w];
    if (!(mask & bit)) of_emu_fail(OF_EMU_LAUNCH_FAILED, "a lane called a warp collective with a mask that it is not in");
    mask &= warp->exists;
    of_emu_pending *p = 0, *empty = 0;
    for (int i = 0; i < OF_EMU_PENDING && !p; i++) {
        of_emu_pending* at = &warp->pending[i];
        if (!at->arrived) {
            if (!empty) empty = at;
        } else if (at->mask == mask) {
            p = at;
        } else if (at->mask & bit) {
            of_emu_fail(OF_EMU_LAUNCH_FAILED, "lanes of one warp meet in collectives with masks that overlap");
        }
    }
    if (!p) {
        if (!(p = empty)) of_emu_fail(OF_EMU_LAUNCH_FAILED, "the emulator cannot hold that many warp collectives at once");
        p->combine = combine;
        p->mask = mask;
    } else if (p->combine != combine) {
        of_emu_fail(OF_EMU_LAUNCH_FAILED, "lanes of one warp meet in different collectives (or value types)");
    }
    p->lanes[s->current % 32] = mine;
    p->arrived |= bit;
    if (p->arrived != mask) return of_emu_wait(s);
    combine(p->lanes, mask);
    p->arrived = 0;
    if (mask & ~bit) {
        warp->ready |= mask & ~bit;
        s->ready_warps |= 1u << w;
    }
}
OF_EMU_INLINE unsigned of_emu_lane() { return of_emu_here()->current % 32; }
// The lanes that have not ended: an upper bound of what a GPU would say in divergent code.
OF_EMU_INLINE unsigned __activemask() {
    of_emu_warp* w = &of_emu_here()->warps[of_emu_here()->current / 32];
    return w->exists & ~w->ended;
}

#define OF_EMU_LANES for (unsigned lane = 0; lane < 32; lane++) if (mask >> lane & 1)

static void of_emu_combine_sync(void**, unsigned) {}
OF_EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { of_emu_collective(of_emu_combine_sync, mask, 0); }

template <typename T> struct of_emu_shuffle {
    T value, result;
    int source; // the lane to read
    static void combine(void** lanes, unsigned mask) {
        OF_EMU_LANES {
            of_emu_shuffle* me = (of_emu_shuffle*)lanes[lane];
            if (!(mask >> me->source & 1))
                of_emu_fail(OF_EMU_LAUNCH_FAILED, "a shuffle reads a lane that is not in its mask");
            me->result = ((of_emu_shuffle*)lanes[me->source])->value;
        }
    }
};
template <typename T> OF_EMU_INLINE T of_emu_shuffled(unsigned mask, T value, int source) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "shuffles move 16, 32 or 64 bits");
    of_emu_shuffle<T> mine;
    mine.value = value;
    mine.source = source;
    of_emu_collective(of_emu_shuffle<T>::combine, mask, &mine);
    return mine.result;
}
template <typename T> OF_EMU_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    int lane = of_emu_lane();
    return of_emu_shuffled(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <typename T> OF_EMU_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = of_emu_lane(), source = lane - (int)delta;
    return of_emu_shuffled(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <typename T> OF_EMU_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = of_emu_lane(), source = lane + (int)delta;
    return of_emu_shuffled(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <typename T> OF_EMU_INLINE T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32) {
    int lane = of_emu_lane(), source = lane ^ flip;
    return of_emu_shuffled(mask, value, source > (lane | (width - 1)) ? lane : source);
}

struct of_emu_vote {
    int predicate;
    unsigned result;
    static void combine(void** lanes, unsigned mask) {
        unsigned ballot = 0;
        OF_EMU_LANES ballot |= (unsigned)(((of_emu_vote*)lanes[lane])->predicate != 0) << lane;
        OF_EMU_LANES ((of_emu_vote*)lanes[lane])->result = ballot;
    }
};
OF_EMU_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
    of_emu_vote mine = {predicate, 0};
    of_emu_collective(of_emu_vote::combine, mask, &mine);
    return mine.result;
}
OF_EMU_INLINE int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
OF_EMU_INLINE int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <typename T> struct of_emu_match {
    T value;
    unsigned result;
    static void combine(void** lanes, unsigned mask) {
        OF_EMU_LANES {
            of_emu_match* me = (of_emu_match*)lanes[lane];
            me->result = 0;
            for (unsigned o = 0; o < 32; o++)
                if (mask >> o & 1 && ((of_emu_match*)lanes[o])->value == me->value) me->result |= 1u << o;
        }
    }
};
template <typename T> OF_EMU_INLINE unsigned __match_any_sync(unsigned mask, T value) {
    of_emu_match<T> mine = {value, 0};
    of_emu_collective(of_emu_match<T>::combine, mask, &mine);
    return mine.result;
}

template <typename T, typename Op> struct of_emu_reduce {
    T value;
    static void combine(void** lanes, unsigned mask) {
        bool first = true;
        T sum = T();
        OF_EMU_LANES {
            T x = ((of_emu_reduce*)lanes[lane])->value;
            sum = first ? x : Op::of(sum, x);
            first = false;
        }
        OF_EMU_LANES ((of_emu_reduce*)lanes[lane])->value = sum;
    }
};
#define OF_EMU_REDUCE(name, type, expression)                                                                          \
    struct of_emu_##name##_##type { static type of(type a, type b) { return expression; } };                           \
    OF_EMU_INLINE type __reduce_##name##_sync(unsigned mask, type value) {                                             \
        of_emu_reduce<type, of_emu_##name##_##type> mine = {value};                                                    \
        of_emu_collective(of_emu_reduce<type, of_emu_##name##_##type>::combine, mask, &mine);                          \
        return mine.value;                                                                                             \
    }
OF_EMU_REDUCE(add, unsigned, a + b)
OF_EMU_REDUCE(min, unsigned, a < b ? a : b)
OF_EMU_REDUCE(max, unsigned, a > b ? a : b)
OF_EMU_REDUCE(and, unsigned, a & b)
OF_EMU_REDUCE(or, unsigned, a | b)
OF_EMU_REDUCE(xor, unsigned, a ^ b)
OF_EMU_REDUCE(add, int, (int)((unsigned)a + (unsigned)b))
OF_EMU_REDUCE(min, int, a < b ? a : b)
OF_EMU_REDUCE(max, int, a > b ? a : b)

#include "emulator_tensor.h"
#include "emulator_math.h"

// ---- launch ---------------------------------------------------------------------------------------------------------

// How the driver sees a kernel: a C struct, in a table at the end of the program.
struct of_emu_kernel {
    const char* name;
    void (*call)(void** params);
    unsigned count;
    const unsigned *sizes, *aligns, *pointers;
    unsigned max_threads;
};
template <typename T> constexpr unsigned of_emu_is_pointer = 0;
template <typename T> constexpr unsigned of_emu_is_pointer<T*> = 1;
template <unsigned... I> struct of_emu_indices {};
template <unsigned N, unsigned... I> struct of_emu_upto : of_emu_upto<N - 1, N - 1, I...> {};
template <unsigned... I> struct of_emu_upto<0, I...> { typedef of_emu_indices<I...> type; };
template <auto Function> struct of_emu_entry;
template <typename... A, void (*Function)(A...)> struct of_emu_entry<Function> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr unsigned sizes[] = {sizeof(A)..., 0}, aligns[] = {alignof(A)..., 0};
    static constexpr unsigned pointers[] = {of_emu_is_pointer<A>..., 0};
    template <unsigned... I> OF_EMU_INLINE void spread(void** params, of_emu_indices<I...>) { Function(*(A*)params[I]...); }
    static void call(void** params) { spread(params, typename of_emu_upto<sizeof...(A)>::type()); }
};
constexpr unsigned of_emu_bounds(unsigned threads = 1024, unsigned = 0, unsigned = 0) { return threads; }

// Makes the loader give this thread its copy of the thread-local variables.
extern "C" __attribute__((visibility("default"))) void of_emu_touch() {
    static thread_local volatile char touched;
    touched = 1;
}

// Runs a grid on the calling thread, block by block. Returns a CUresult.
extern "C" __attribute__((visibility("default"))) int of_emu_run(void (*call)(void**), void** params, of_emu_launch* l) {
    of_emu_state* s = (of_emu_state*)l->arena;
    unsigned count = l->block[0] * l->block[1] * l->block[2], warps = (count + 31) / 32;
    s->block_dim = dim3(l->block[0], l->block[1], l->block[2]);
    s->grid_dim = dim3(l->grid[0], l->grid[1], l->grid[2]);
    s->order = l->order;
    s->count = count;
    s->call = call;
    s->params = params;
    s->error = l->error;
    s->error_size = l->error_size;
    s->code = 0;
    l->fault = of_emu_fault;
    char* shared = (char*)s + OF_EMU_SHARED_AT;
    // Behind what the launch asked for lies a fence that a write out of bounds changes.
    const unsigned fence = 256;
    memset(shared + l->shared, 0xa5, fence);
    for (unsigned z = 0; z < l->grid[2]; z++)
        for (unsigned y = 0; y < l->grid[1]; y++)
            for (unsigned x = 0; x < l->grid[0]; x++) {
                s->block = {x, y, z};
                if (s->order & 4) s->block = {l->grid[0] - 1 - x, l->grid[1] - 1 - y, l->grid[2] - 1 - z};
                s->next = s->workers = s->ready_warps = s->copies_used = 0;
                s->barrier_waiting = s->barrier_sum = 0;
                s->next_index = {0, 0, 0};
                s->alive = count;
                for (unsigned w = 0; w < warps; w++) {
                    of_emu_warp* warp = &s->warps[w];
                    warp->exists = count - 32 * w >= 32 ? 0xffffffffu : (1u << (count - 32 * w)) - 1;
                    warp->ended = warp->ready = warp->at_barrier = 0;
                    for (int i = 0; i < OF_EMU_PENDING; i++) warp->pending[i].arrived = 0;
                }
                // What a block has not written is NaN.
                memset(shared, 0xff, l->shared);
                if (l->statics) memset(l->statics, 0xff, l->statics_size);
                of_emu_switch(&s->host_sp, of_emu_new_worker(s));
                if (s->code) return s->code;
                for (unsigned i = 0; i < fence; i++)
                    if (shared[l->shared + i] != (char)0xa5) {
                        snprintf(s->error, s->error_size, "block %u,%u,%u wrote behind its %u bytes of dynamic shared memory",
                                 s->block.x, s->block.y, s->block.z, l->shared);
                        return OF_EMU_ILLEGAL_ADDRESS;
                    }
            }
    return 0;
}
