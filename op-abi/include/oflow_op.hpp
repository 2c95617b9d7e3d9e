// Ops of oflow in C++17, on top of oflow_op.h. Header only.
//
//     #include "oflow_op.hpp"
//
//     static void scale(const oflow::Call &call)
//     {
//         const float *x = call.input("x").data<float>();
//         float *y = call.output(0).data<float>();
//         float by = call.param("by").as<float>();
//         for (int64_t i = 0; i < call.output(0).size(); ++i)
//             y[i] = by * x[i];
//     }
//
//     OFLOW_LIBRARY(mine)
//     {
//         library.op("scale(x: f32; by: runtime float = 2.0) -> y")
//             .signatures({"S(0) -> S(0)", "P -> P"})
//             .gradient("x = mine.scale(grad y; by)")
//             .samples({"f32[4, 6]"})
//             .cpu(scale);
//     }
//
// Functions report errors by exceptions; the header catches them, and oflow reports them with the op and the library. Functions may
// run on several threads at once.
#ifndef OFLOW_OP_HPP
#define OFLOW_OP_HPP

#include "oflow_op.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace oflow {

// Why a function failed: a sentence.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void bounds_failed(long long index, long long size)
{
    throw Error("index " + std::to_string(index) + " of a dim of size " + std::to_string(size));
}

} // namespace oflow

#ifndef OFLOW_CHECK_BOUNDS
#ifdef NDEBUG
#define OFLOW_CHECK_BOUNDS 0
#else
#define OFLOW_CHECK_BOUNDS 1
#endif
#endif
#ifndef OFLOW_BOUNDS_FAILED
#define OFLOW_BOUNDS_FAILED(index, size) ::oflow::bounds_failed(index, size)
#endif
#include "oflow_tensor.h"

namespace oflow {

static_assert(sizeof(long long) == sizeof(int64_t), "sizes are 64-bit integers");

// An element in bfloat16. Converts from float to the nearest (ties to even), and to float exactly.
struct bf16 {
    uint16_t bits;
    bf16() = default;
    explicit bf16(float x)
    {
        uint32_t u;
        std::memcpy(&u, &x, 4);
        bits = x != x ? uint16_t(u >> 16 | 0x40) : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    operator float() const
    {
        uint32_t u = uint32_t(bits) << 16;
        float x;
        std::memcpy(&x, &u, 4);
        return x;
    }
};

// An element in IEEE half precision. Converts from float to the nearest (ties to even), and to float exactly.
struct f16 {
    uint16_t bits;
    f16() = default;
    explicit f16(float x)
    {
        uint32_t u;
        std::memcpy(&u, &x, 4);
        uint32_t sign = u >> 16 & 0x8000, size = u & 0x7fffffff, half = 0;
        // To the right by n, to nearest, ties to even.
        auto shifted = [](uint32_t v, uint32_t n) { return (v + (uint32_t(1) << (n - 1)) - 1 + (v >> n & 1)) >> n; };
        if (size > 0x7f800000) // NaN
            half = 0x7e00 | (size >> 13 & 0x1ff);
        else if (size >= 0x47800000) // from 65536 on
            half = 0x7c00;
        else if (size >= 0x38800000) // another bias of the exponent; a carry out of the fraction is the next exponent
            half = shifted(size - 0x38000000, 13);
        else if (size >= 0x33000000) // denormal: a multiple of 2^-24
            half = shifted((size & 0x7fffff) | 0x800000, 126 - (size >> 23));
        bits = uint16_t(sign | half);
    }
    operator float() const
    {
        uint32_t sign = uint32_t(bits & 0x8000) << 16, size = bits & 0x7fff, u;
        float x = float(size) / 16777216.0f; // denormal: a multiple of 2^-24
        if (size > 0x7c00)
            u = size << 13 | 0x7fc00000;
        else if (size == 0x7c00)
            u = 0x7f800000;
        else if (size >= 0x400)
            u = (size << 13) + 0x38000000;
        else
            std::memcpy(&u, &x, 4);
        u |= sign;
        std::memcpy(&x, &u, 4);
        return x;
    }
};

// The code of an element type.
template <class T> struct dtype_of;
#define OFLOW_DTYPE(type, dtype)                                                                                               \
    template <> struct dtype_of<type> {                                                                                        \
        static constexpr uint32_t code = dtype;                                                                                \
    };
OFLOW_DTYPE(bool, OFLOW_BOOL)
OFLOW_DTYPE(uint8_t, OFLOW_U8)
OFLOW_DTYPE(int8_t, OFLOW_I8)
OFLOW_DTYPE(int32_t, OFLOW_I32)
OFLOW_DTYPE(int64_t, OFLOW_I64)
OFLOW_DTYPE(f16, OFLOW_F16)
OFLOW_DTYPE(bf16, OFLOW_BF16)
OFLOW_DTYPE(float, OFLOW_F32)
OFLOW_DTYPE(double, OFLOW_F64)
OFLOW_DTYPE(int16_t, OFLOW_I16)
OFLOW_DTYPE(uint16_t, OFLOW_U16)
OFLOW_DTYPE(uint32_t, OFLOW_U32)
OFLOW_DTYPE(std::complex<float>, OFLOW_C64)
OFLOW_DTYPE(std::complex<double>, OFLOW_C128)
#undef OFLOW_DTYPE

// The name of an element type.
inline const char *dtype_name(uint32_t code)
{
    static const char *const names[] = {"bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64",
                                        "i16", "u16", "u32", "f8_e4m3fn", "f8_e5m2", "c64", "c128"};
    return code < 16 ? names[code] : "another type";
}

inline std::string string_of(oflow_str s) { return s.len ? std::string((const char *)s.data, s.len) : std::string(); }

// Sizes, one for each dim.
struct Shape : std::vector<int64_t> {
    using std::vector<int64_t>::vector;
    Shape(std::vector<int64_t> sizes) : std::vector<int64_t>(std::move(sizes)) {}
    int ndim() const { return int(size()); }
};

// An element type, with scale and zero point if it is quantised. Converts to its code.
class DType {
  public:
    DType(uint32_t code, double scale = 0, int64_t zero_point = 0) : code_(code), scale_(scale), zero_(zero_point) {}
    // By name: "f32" or "float32"; "qint8", "quint8", "qint16" and "qint32" with a scale.
    DType(const std::string &name, double scale = 0, int64_t zero_point = 0) : scale_(scale), zero_(zero_point)
    {
        static const std::pair<const char *, uint32_t> quantised[] = {
            {"qint8", OFLOW_I8}, {"quint8", OFLOW_U8}, {"qint16", OFLOW_I16}, {"qint32", OFLOW_I32}};
        static const std::pair<const char *, uint32_t> others[] = {
            {"uint8", OFLOW_U8},     {"int8", OFLOW_I8},       {"int16", OFLOW_I16},       {"uint16", OFLOW_U16},
            {"int32", OFLOW_I32},    {"uint32", OFLOW_U32},    {"int64", OFLOW_I64},       {"float16", OFLOW_F16},
            {"float32", OFLOW_F32},  {"float64", OFLOW_F64},   {"bfloat16", OFLOW_BF16},   {"half", OFLOW_F16},
            {"float", OFLOW_F32},    {"double", OFLOW_F64},    {"complex64", OFLOW_C64},   {"complex128", OFLOW_C128}};
        for (auto &q : quantised)
            if (name == q.first) {
                if (!(scale > 0))
                    throw Error(name + " needs a scale greater than zero");
                code_ = q.second;
                return;
            }
        if (scale != 0 || zero_point != 0)
            throw Error(name + " is not quantised, so it has no scale");
        for (auto &o : others)
            if (name == o.first) {
                code_ = o.second;
                return;
            }
        for (uint32_t code = 0; code < 16; ++code)
            if (name == dtype_name(code)) {
                code_ = code;
                return;
            }
        throw Error("there is no dtype '" + name + "'");
    }
    DType(const char *name, double scale = 0, int64_t zero_point = 0) : DType(std::string(name), scale, zero_point) {}
    operator uint32_t() const { return code_; }
    bool quantised() const { return scale_ > 0; }
    // An element stands for (stored - zero_point) * scale.
    double scale() const { return given(scale_); }
    int64_t zero_point() const { return given(zero_); }
    std::string str() const
    {
        std::string name = dtype_name(code_);
        if (!quantised())
            return name;
        return (name[0] == 'u' ? "quint" + name.substr(1) : "qint" + name.substr(1));
    }
    friend bool operator==(const DType &a, const DType &b)
    {
        return a.code_ == b.code_ && a.scale_ == b.scale_ && a.zero_ == b.zero_;
    }
    friend bool operator!=(const DType &a, const DType &b) { return !(a == b); }
    friend bool operator==(const DType &a, uint32_t code) { return a.code_ == code; }
    friend bool operator!=(const DType &a, uint32_t code) { return a.code_ != code; }

  private:
    template <class T> T given(T x) const
    {
        if (!quantised())
            throw Error(str() + " is not quantised, so it has no scale and no zero point");
        return x;
    }
    uint32_t code_ = OFLOW_F32;
    double scale_;
    int64_t zero_;
};

// A kind of device: "cpu" (also "x86") or "cuda".
class Device {
  public:
    explicit Device(uint32_t code) : cuda_(code == OFLOW_CUDA) {}
    Device(const std::string &name) : cuda_(name == "cuda")
    {
        if (!cuda_ && name != "cpu" && name != "x86")
            throw Error("there is no device '" + name + "'; there are cpu and cuda");
    }
    Device(const char *name) : Device(std::string(name)) {}
    std::string str() const { return cuda_ ? "cuda" : "cpu"; }
    uint32_t code() const { return cuda_ ? OFLOW_CUDA : OFLOW_CPU; }
    friend bool operator==(const Device &a, const Device &b) { return a.cuda_ == b.cuda_; }
    friend bool operator!=(const Device &a, const Device &b) { return a.cuda_ != b.cuda_; }

  private:
    bool cuda_;
};

// Which stream of a device a kernel runs on.
enum class Stream : uint32_t { compute = OFLOW_STREAM_COMPUTE, copy = OFLOW_STREAM_COPY };

// What a device rule says: the device whose kernel runs, and the devices of the outputs; those that are not said are on `run_on`.
struct Devices {
    Device run_on;
    std::vector<Device> outputs;
    Stream stream;
    Devices(Device run_on, std::vector<Device> outputs = {}, Stream stream = Stream::compute)
        : run_on(run_on), outputs(std::move(outputs)), stream(stream)
    {
    }
};

// A parameter: a value with a type at run time. Conversions lose nothing, or they throw. + - * / work between numbers of any types
// and join texts; comparisons work between values of any types.
class Value {
  public:
    using Held = std::variant<std::monostate, int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>,
                              std::vector<bool>, std::vector<std::string>, std::vector<std::vector<int64_t>>>;

    Value() = default;
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Value(T x)
    {
        if constexpr (std::is_same_v<T, bool>)
            held_ = x;
        else if constexpr (std::is_floating_point_v<T>)
            held_ = double(x);
        else if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 8) {
            if (x > (T)std::numeric_limits<int64_t>::max())
                throw Error("an integer beyond 64 bits");
            held_ = int64_t(x);
        } else
            held_ = int64_t(x);
    }
    Value(const char *x) : held_(std::string(x)) {}
    Value(std::string x) : held_(std::move(x)) {}
    template <class T> Value(const std::vector<T> &x)
    {
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>)
            held_ = x;
        else if constexpr (std::is_convertible_v<T, std::string>)
            held_ = std::vector<std::string>(x.begin(), x.end());
        else if constexpr (std::is_floating_point_v<T>)
            held_ = std::vector<double>(x.begin(), x.end());
        else {
            // Lists of integers, or integers.
            using Member = std::conditional_t<std::is_arithmetic_v<T>, int64_t, std::vector<int64_t>>;
            std::vector<Member> all;
            for (const T &i : x)
                all.push_back(std::get<Member>(Value(i).held_));
            held_ = std::move(all);
        }
    }
    template <class T> Value(std::initializer_list<T> x) : Value(std::vector<T>(x)) {}

    // A value that a function returns is a copy: assigning to it would change nothing, and does not compile.
    Value(const Value &) = default;
    Value(Value &&) = default;
    Value &operator=(const Value &) & = default;
    Value &operator=(Value &&) & = default;

    // Whether there is a value: optional parameters may be left out.
    bool given() const { return held_.index() != 0; }
    const Held &held() const { return held_; }

    // The value as a T: a number, bool, std::string, a std::vector of these, or one of lists of integers (Shape too).
    template <class T> T as() const
    {
        if constexpr (std::is_same_v<T, std::string>)
            return get<std::string>("a text");
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
            return get<std::vector<std::string>>("a list of texts");
        else if constexpr (std::is_same_v<T, std::vector<bool>>)
            return get<std::vector<bool>>("a list of bools");
        else if constexpr (std::is_arithmetic_v<T>)
            return number<T>();
        else if constexpr (std::is_arithmetic_v<typename T::value_type>)
            return list<T>();
        else {
            T all;
            for (auto &x : get<std::vector<std::vector<int64_t>>>("a list of lists of integers"))
                all.push_back(Value(x).template list<typename T::value_type>());
            return all;
        }
    }

    bool operator==(const Value &o) const { return compare(o) == 0; }
    bool operator!=(const Value &o) const { return compare(o) != 0; }
    bool operator<(const Value &o) const { return compare(o) == -1; }
    bool operator>(const Value &o) const { return compare(o) == 1; }
    bool operator<=(const Value &o) const { return compare(o) == 0 || compare(o) == -1; }
    bool operator>=(const Value &o) const { return compare(o) == 0 || compare(o) == 1; }

    friend Value operator+(const Value &a, const Value &b)
    {
        if (auto *x = std::get_if<std::string>(&a.held_))
            return *x + b.get<std::string>("a text");
        return arithmetic(
            a, b, "+", [](int64_t x, int64_t y, int64_t *r) { return __builtin_add_overflow(x, y, r); },
            [](double x, double y) { return x + y; });
    }
    friend Value operator-(const Value &a, const Value &b)
    {
        return arithmetic(
            a, b, "-", [](int64_t x, int64_t y, int64_t *r) { return __builtin_sub_overflow(x, y, r); },
            [](double x, double y) { return x - y; });
    }
    friend Value operator*(const Value &a, const Value &b)
    {
        return arithmetic(
            a, b, "*", [](int64_t x, int64_t y, int64_t *r) { return __builtin_mul_overflow(x, y, r); },
            [](double x, double y) { return x * y; });
    }
    // Of two integers it is an integer where it is exact, a float elsewhere.
    friend Value operator/(const Value &a, const Value &b)
    {
        if (b.number<double>() == 0)
            throw Error("a division by zero");
        auto *x = std::get_if<int64_t>(&a.held_), *y = std::get_if<int64_t>(&b.held_);
        if (x && y && !(*x == std::numeric_limits<int64_t>::min() && *y == -1) && *x % *y == 0)
            return *x / *y;
        return a.number<double>() / b.number<double>();
    }
    friend Value operator-(const Value &a) { return Value(-1) * a; }
    Value &operator+=(const Value &o) & { return *this = *this + o; }
    Value &operator-=(const Value &o) & { return *this = *this - o; }
    Value &operator*=(const Value &o) & { return *this = *this * o; }
    Value &operator/=(const Value &o) & { return *this = *this / o; }

  private:
    Held held_;

    const char *what() const
    {
        static const char *const names[] = {"not given",         "an integer",       "a float",         "a bool", "a text",
                                            "a list of integers", "a list of floats", "a list of bools", "a list of texts",
                                            "a list of lists of integers"};
        return names[held_.index()];
    }
    [[noreturn]] void wrong(const char *wanted) const { throw Error(std::string("the parameter is ") + what() + ", not " + wanted); }
    template <class T> const T &get(const char *wanted) const
    {
        if (auto *x = std::get_if<T>(&held_))
            return *x;
        wrong(wanted);
    }
    template <class T> static T exact(int64_t x)
    {
        // As a double the value is compared: 2^63 is the first that no 64-bit integer holds.
        T y = T(x);
        bool same = std::is_floating_point_v<T> ? double(y) < 9223372036854775808.0 && int64_t(y) == x
                                                : int64_t(y) == x && (y < T(0)) == (x < 0);
        if (!same)
            throw Error("the parameter " + std::to_string(x) + " does not fit its type");
        return y;
    }
    template <class T> T number() const
    {
        if constexpr (std::is_same_v<T, bool>)
            return get<bool>("a bool");
        if (auto *x = std::get_if<bool>(&held_))
            return T(*x);
        if (auto *x = std::get_if<int64_t>(&held_))
            return exact<T>(*x);
        if constexpr (std::is_floating_point_v<T>)
            return T(get<double>("a number"));
        else
            return exact<T>(get<int64_t>("an integer"));
    }
    template <class L> L list() const
    {
        using T = typename L::value_type;
        L all;
        if (auto *x = std::get_if<std::vector<int64_t>>(&held_)) {
            for (int64_t i : *x)
                all.push_back(exact<T>(i));
            return all;
        }
        if constexpr (std::is_floating_point_v<T>) {
            for (double i : get<std::vector<double>>("a list of floats"))
                all.push_back(T(i));
            return all;
        }
        wrong("a list of integers");
    }
    // -1, 0 or 1; 2 for values that cannot be ordered.
    int compare(const Value &o) const
    {
        auto order = [](const auto &x, const auto &y) { return x == y ? 0 : x < y ? -1 : x > y ? 1 : 2; };
        bool numbers = held_.index() >= 1 && held_.index() <= 3 && o.held_.index() >= 1 && o.held_.index() <= 3;
        auto *x = std::get_if<int64_t>(&held_), *y = std::get_if<int64_t>(&o.held_);
        if (x && y)
            return order(*x, *y);
        if (numbers)
            return order(real(), o.real());
        if (held_.index() != o.held_.index())
            return 2;
        return std::visit(
            [&](const auto &mine) {
                using T = std::decay_t<decltype(mine)>;
                if constexpr (std::is_same_v<T, std::monostate>)
                    return 0;
                else
                    return order(mine, std::get<T>(o.held_));
            },
            held_);
    }
    double real() const
    {
        if (auto *x = std::get_if<int64_t>(&held_))
            return double(*x);
        if (auto *x = std::get_if<bool>(&held_))
            return *x;
        return get<double>("a number");
    }
    template <class I, class F> static Value arithmetic(const Value &a, const Value &b, const char *op, I whole, F real)
    {
        auto *x = std::get_if<int64_t>(&a.held_), *y = std::get_if<int64_t>(&b.held_);
        if (x && y) {
            int64_t r;
            if (whole(*x, *y, &r))
                throw Error(std::to_string(*x) + " " + op + " " + std::to_string(*y) + " is beyond 64 bits");
            return r;
        }
        return real(a.real(), b.real());
    }
};

namespace detail {

inline Value value_of(const oflow_attr &a)
{
    switch (a.kind) {
    case OFLOW_ATTR_INT:
    case OFLOW_ATTR_DTYPE:
        return a.integer;
    case OFLOW_ATTR_FLOAT:
        return a.real;
    case OFLOW_ATTR_BOOL:
        return a.integer != 0;
    case OFLOW_ATTR_STR:
    case OFLOW_ATTR_DEVICE:
    case OFLOW_ATTR_SBP:
    case OFLOW_ATTR_OTHER:
        return string_of(a.text);
    case OFLOW_ATTR_INTS:
    case OFLOW_ATTR_DTYPES:
        return std::vector<int64_t>(a.integers, a.integers + a.count);
    case OFLOW_ATTR_FLOATS:
        return std::vector<double>(a.reals, a.reals + a.count);
    case OFLOW_ATTR_BOOLS:
        return std::vector<bool>(a.integers, a.integers + a.count);
    case OFLOW_ATTR_STRS: {
        std::vector<std::string> all;
        for (size_t i = 0; i < a.count; ++i)
            all.push_back(string_of(a.texts[i]));
        return all;
    }
    case OFLOW_ATTR_INT_LISTS: {
        std::vector<std::vector<int64_t>> all;
        const int64_t *at = a.integers;
        for (size_t i = 0; i < a.count; at += a.lengths[i++])
            all.emplace_back(at, at + a.lengths[i]);
        return all;
    }
    default:
        return {};
    }
}

inline Value find(const oflow_attr *const *attrs, size_t count, const std::string &name)
{
    for (size_t i = 0; i < count; ++i)
        if (string_of(attrs[i]->name) == name)
            return value_of(*attrs[i]);
    throw Error("there is no parameter '" + name + "'");
}

} // namespace detail

} // namespace oflow
#include "oflow_params.hpp"
namespace oflow {

// A tensor of a call: the shard of this rank.
class View {
  public:
    explicit View(const oflow_view *v) : v_(v) {}
    std::string name() const { return string_of(v_->name); }
    // The code of the element type; of a quantised tensor that of the integers that it stores.
    uint32_t dtype() const { return v_->dtype; }
    DType dtype_info() const { return DType(v_->dtype, v_->scale, v_->zero_point); }
    // Of a quantised tensor.
    double scale() const { return dtype_info().scale(); }
    int64_t zero_point() const { return dtype_info().zero_point(); }
    Device device() const { return Device(v_->device); }
    bool on_cuda() const { return v_->device == OFLOW_CUDA; }
    int rank() const { return int(v_->rank); }
    int64_t dim(int d) const
    {
        if (d < 0 || d >= rank())
            throw Error("'" + name() + "' has " + std::to_string(rank()) + " dims, so there is no dim " + std::to_string(d));
        return v_->dims[d];
    }
    Shape shape() const { return Shape(v_->dims, v_->dims + rank()); }
    Shape strides() const { return Shape(v_->strides, v_->strides + rank()); }
    // Sizes of the logical tensor, and the first logical index of the shard.
    Shape whole() const { return Shape(v_->whole, v_->whole + rank()); }
    Shape start() const { return Shape(v_->start, v_->start + rank()); }
    int64_t size() const
    {
        int64_t n = 1;
        for (int d = 0; d < rank(); ++d)
            n *= v_->dims[d];
        return n;
    }
    void *data() const { return v_->data; }
    // The address of the first element; throws if the elements are of another type.
    template <class T> T *data() const
    {
        if (v_->dtype != dtype_of<T>::code)
            throw Error("'" + name() + "' is " + dtype_name(v_->dtype) + ", not " + dtype_name(dtype_of<T>::code));
        return static_cast<T *>(v_->data);
    }
    // The elements by index: a[i][j].
    template <class T, int N> Accessor<T, N> accessor() const
    {
        T *at = data<T>();
        if (rank() != N)
            throw Error("'" + name() + "' has " + std::to_string(rank()) + " dims, not " + std::to_string(N));
        return Accessor<T, N>(at, (const long long *)v_->dims, (const long long *)v_->strides);
    }
    // The same as a struct that kernels take.
    template <class T> Tensor<T> tensor() const
    {
        T *at = data<T>();
        if (rank() > most_dims)
            throw Error("'" + name() + "' has more than 8 dims");
        Tensor<T> t{at, rank(), {}, {}};
        for (int d = 0; d < rank(); ++d) {
            t.dims_[d] = v_->dims[d];
            t.strides_[d] = v_->strides[d];
        }
        return t;
    }

  private:
    const oflow_view *v_;
};

namespace detail {
inline const oflow_host *&host()
{
    static const oflow_host *host = nullptr;
    return host;
}
} // namespace detail

// Calls body(begin, end) for parts of 0..count of at most `grain` each, on the threads of the rank; returns after the last one. An
// exception in a part is thrown again here.
template <class F> void parallel_for(size_t count, size_t grain, F body)
{
    struct Work {
        F &body;
        std::mutex mutex;
        std::exception_ptr failed;
    };
    Work work{body, {}, nullptr};
    auto part = [](void *data, size_t begin, size_t end) noexcept {
        auto &w = *static_cast<Work *>(data);
        try {
            w.body(begin, end);
        } catch (...) {
            std::lock_guard<std::mutex> lock(w.mutex);
            w.failed = std::current_exception();
        }
    };
    const oflow_host *host = detail::host();
    grain = grain ? grain : 1;
    if (host && host->parallel_for)
        host->parallel_for(count, grain, part, &work);
    else
        for (size_t at = 0; at < count; at += grain)
            part(&work, at, count - at < grain ? count : at + grain);
    if (work.failed)
        std::rethrow_exception(work.failed);
}

// What a kernel is given.
class Call {
  public:
    explicit Call(const oflow_call *c) : c_(c) {}
    std::string op() const { return string_of(c_->op); }
    size_t input_count() const { return c_->input_count; }
    size_t output_count() const { return c_->output_count; }
    // An input by position or name. has_input tells whether an optional one is there.
    template <class W> View input(W which) const { return at(c_->inputs, c_->input_count, which, "input"); }
    template <class W> bool has_input(W which) const { return find(c_->inputs, c_->input_count, which) != nullptr; }
    template <class W> View output(W which) const { return at(c_->outputs, c_->output_count, which, "output"); }
    Value param(const std::string &name) const { return detail::find(c_->attrs, c_->attr_count, name); }
    // The parameters as a struct (oflow_params.hpp).
    template <class P> P params() const { return read_params<P>(*this); }
    // Scratch memory; null where the kernel asked for none.
    void *workspace() const { return c_->workspace ? c_->workspace->data : nullptr; }
    // The CUstream to put the work on.
    void *stream() const { return c_->stream; }
    const oflow_call *raw() const { return c_; }
    // Says the length of dim 0 of the outputs, for ops with the trait length_by_kernel.
    void set_length(int64_t length) const
    {
        if (!c_->length)
            throw Error("the op does not say length_by_kernel");
        *c_->length = length;
    }

  private:
    static const oflow_view *find(const oflow_view *const *all, size_t count, const std::string &name)
    {
        for (size_t i = 0; i < count; ++i)
            if (all[i] && string_of(all[i]->name) == name)
                return all[i];
        return nullptr;
    }
    static const oflow_view *find(const oflow_view *const *all, size_t count, const char *name)
    {
        return find(all, count, std::string(name));
    }
    static const oflow_view *find(const oflow_view *const *all, size_t count, int i)
    {
        return i >= 0 && size_t(i) < count ? all[i] : nullptr;
    }
    static std::string show(int i) { return std::to_string(i); }
    static std::string show(const std::string &name) { return "'" + name + "'"; }
    template <class W> static View at(const oflow_view *const *all, size_t count, W which, const char *what)
    {
        if (auto *v = find(all, count, which))
            return View(v);
        throw Error(std::string("there is no ") + what + " " + show(which));
    }
    const oflow_call *c_;
};

// Shape and element type of a tensor, for rules.
class Type {
  public:
    explicit Type(const oflow_type *t) : t_(t) {}
    std::string name() const { return string_of(t_->name); }
    uint32_t dtype() const { return t_->dtype; }
    DType dtype_info() const { return DType(t_->dtype, t_->scale, t_->zero_point); }
    int rank() const { return int(t_->rank); }
    Shape shape() const { return Shape(t_->dims, t_->dims + t_->rank); }
    int64_t dim(int d) const
    {
        if (d < 0 || d >= rank())
            throw Error("'" + name() + "' has " + std::to_string(rank()) + " dims, so there is no dim " + std::to_string(d));
        return t_->dims[d];
    }

  private:
    const oflow_type *t_;
};

// What rules are given. A rule is the same on every rank.
class Infer {
  public:
    explicit Infer(const oflow_infer *i) : i_(i) {}
    size_t input_count() const { return i_->input_count; }
    bool has_input(size_t i) const { return i < i_->input_count && i_->inputs[i]; }
    Type input(size_t i) const
    {
        if (!has_input(i))
            throw Error("there is no input " + std::to_string(i));
        return Type(i_->inputs[i]);
    }
    // Known to the size of a workspace and to the condition of a kernel only.
    Type output(size_t i) const
    {
        if (i >= i_->output_count)
            throw Error("there is no output " + std::to_string(i) + " here");
        return Type(i_->outputs[i]);
    }
    Value param(const std::string &name) const { return detail::find(i_->attrs, i_->attr_count, name); }
    // The parameters as a struct (oflow_params.hpp).
    template <class P> P params() const { return read_params<P>(*this); }
    // For a device rule: the device of an input, and the one that the call would run on without the rule.
    Device device(size_t i) const
    {
        if (!i_->devices || !has_input(i) || i_->devices[i] == OFLOW_NO_DEVICE)
            throw Error("the device of input " + std::to_string(i) + " is not known here: a device rule knows those of inputs that are there");
        return Device(i_->devices[i]);
    }
    Device default_device() const
    {
        if (!i_->devices)
            throw Error("the device of a call is known to a device rule only");
        return Device(i_->default_device);
    }

  private:
    const oflow_infer *i_;
};

namespace detail {

using Texts = std::vector<std::string>;

inline oflow_str str(const std::string &s) { return {(const uint8_t *)s.data(), s.size()}; }

// Runs a callback's body and tells its error.
template <class F> int32_t guarded(oflow_message *error, F body) noexcept
{
    int32_t status = OFLOW_PANIC;
    const char *why = "an exception that is no std::exception";
    std::string text;
    try {
        body();
        return OFLOW_OK;
    } catch (const Error &e) {
        status = OFLOW_ERROR;
        text = e.what();
        why = text.c_str();
    } catch (const std::exception &e) {
        text = e.what();
        why = text.c_str();
    } catch (...) {
    }
    if (error && error->text) {
        error->len = std::min(std::strlen(why), error->capacity);
        std::memcpy(error->text, why, error->len);
    }
    return status;
}

struct Kernel {
    std::string name, device, dtypes, priority, source, entry, threads, condition;
    std::function<void(const Call &)> run;
    std::function<size_t(const Infer &)> workspace;
    std::function<bool(const Infer &)> applies;
    oflow_kernel exported{};

    static int32_t call(const oflow_call *c, oflow_message *error)
    {
        return guarded(error, [&] { static_cast<Kernel *>(c->user)->run(Call(c)); });
    }
    static int64_t bytes(const oflow_infer *i, oflow_message *error)
    {
        int64_t n = 0;
        int32_t status = guarded(error, [&] { n = int64_t(static_cast<Kernel *>(i->user)->workspace(Infer(i))); });
        return status == OFLOW_OK ? n : -status;
    }
    static int32_t asked(const oflow_infer *i, oflow_message *error)
    {
        bool applies = false;
        int32_t status = guarded(error, [&] { applies = static_cast<Kernel *>(i->user)->applies(Infer(i)); });
        return status == OFLOW_OK ? applies : -status;
    }
    const oflow_kernel *finish()
    {
        exported.head = {sizeof(oflow_kernel), OFLOW_OP_MAJOR, OFLOW_OP_MINOR};
        exported.name = str(name);
        exported.device = str(device);
        exported.dtypes = str(dtypes);
        exported.priority = str(priority);
        exported.run = run ? &Kernel::call : nullptr;
        exported.workspace = workspace ? &Kernel::bytes : nullptr;
        exported.cuda_source = str(source);
        exported.cuda_entry = str(entry);
        exported.cuda_threads = str(threads);
        exported.user = this;
        exported.condition = str(condition);
        exported.applies = applies ? &Kernel::asked : nullptr;
        return &exported;
    }
};

} // namespace detail

} // namespace oflow

#include "oflow_call.hpp"
#include "oflow_function.hpp"

namespace oflow {

// An op. The texts are those of oflow_op_def in oflow_op.h.
class Op {
  public:
    explicit Op(std::string declaration) : declaration_(std::move(declaration)) {}
    Op(const Op &) = delete;
    Op &operator=(const Op &) = delete;

#define OFLOW_SAYS(name)                                                                                                       \
    Op &name(std::string text)                                                                                                 \
    {                                                                                                                          \
        name##_ = std::move(text);                                                                                             \
        return *this;                                                                                                          \
    }
#define OFLOW_LISTS(name)                                                                                                      \
    Op &name(std::vector<std::string> texts)                                                                                   \
    {                                                                                                                          \
        name##_.insert(name##_.end(), texts.begin(), texts.end());                                                             \
        return *this;                                                                                                          \
    }
    OFLOW_SAYS(domain)
    OFLOW_SAYS(doc)
    OFLOW_SAYS(subject)
    OFLOW_SAYS(traits)
    OFLOW_SAYS(expression)
    OFLOW_SAYS(shape)
    OFLOW_SAYS(dtype)
    OFLOW_SAYS(factors)
    OFLOW_SAYS(gradient)
    OFLOW_LISTS(functions)
    OFLOW_LISTS(derivatives)
    OFLOW_LISTS(linear_in)
    OFLOW_LISTS(signatures)
    OFLOW_LISTS(nd_infer)
    OFLOW_LISTS(nd_extra)
    OFLOW_LISTS(nd_valid)
    OFLOW_LISTS(samples)
#undef OFLOW_SAYS
#undef OFLOW_LISTS
    Op &version(uint32_t v)
    {
        version_ = v;
        return *this;
    }
    // Rules by code. They throw oflow::Error to refuse a call.
    Op &check(std::function<void(const Infer &)> f)
    {
        check_ = std::move(f);
        return *this;
    }
    Op &shapes(std::function<std::vector<Shape>(const Infer &)> f)
    {
        shapes_ = std::move(f);
        return *this;
    }
    Op &dtypes(std::function<std::vector<uint32_t>(const Infer &)> f)
    {
        dtypes_ = std::move(f);
        return *this;
    }
    Op &get_sbp(std::function<std::vector<std::string>(const Infer &)> f)
    {
        get_sbp_ = std::move(f);
        return *this;
    }
    // The gradient by code, in the place of `gradient`: g.set("x", g.call("mul", {g.grad("y"), g.input("x")})). `saves`: the inputs and
    // outputs that it reads, by name; all of them are kept for it if nothing is said.
    Op &grad_rule(std::function<void(Grad &)> f)
    {
        grad_rule_ = std::move(f);
        return *this;
    }
    Op &grad_rule(std::function<void(Grad &)> f, std::vector<std::string> saves)
    {
        grad_saves_listed_ = true;
        grad_saves_ = std::move(saves);
        return grad_rule(std::move(f));
    }
    // Where a call runs and where its outputs are: OneFlow's DeviceAndStreamInferFn, MegEngine's set_device_infer.
    Op &devices(std::function<Devices(const Infer &)> f)
    {
        devices_ = std::move(f);
        return *this;
    }
    template <class F> Op &set_device_infer(F)
    {
        static_assert(!std::is_same_v<F, F>, "a device rule returns what it says: write "
                                             ".devices([](const oflow::Infer &call) { return oflow::Devices(\"cpu\"); })");
        return *this;
    }
    // Kernels. `dtypes` are the element types of float inputs that it takes ("f32|f64"), all if it is empty.
    Op &cpu(std::function<void(const Call &)> run, std::string dtypes = "") { return kernel("cpu", run, dtypes); }
    // Puts work on call.stream() and does not wait for it.
    Op &cuda(std::function<void(const Call &)> run, std::string dtypes = "") { return kernel("cuda", run, dtypes); }
    // A CUDA kernel as text: a file beside the library, or the text itself, and the extern "C" __global__ function in it.
    Op &cuda_text(std::string source, std::string entry, std::string threads = "")
    {
        kernels_.emplace_back();
        kernels_.back().device = "cuda";
        kernels_.back().source = std::move(source);
        kernels_.back().entry = std::move(entry);
        kernels_.back().threads = std::move(threads);
        return *this;
    }
    // When the kernel that was added last applies, besides its dtypes: "y: f32 and not exact and mode in (up, down) and k <= 8"; or as
    // code, which is asked when a call is planned and knows the outputs. `words` say it in lists.
    Op &when(std::string condition)
    {
        last().condition = std::move(condition);
        last().applies = nullptr;
        return *this;
    }
    Op &when(std::string words, std::function<bool(const Infer &)> applies)
    {
        last().condition = std::move(words);
        last().applies = std::move(applies);
        return *this;
    }
    // Scratch memory, its priority, and its name for the kernel that was added last.
    Op &workspace(std::function<size_t(const Infer &)> bytes)
    {
        last().workspace = std::move(bytes);
        return *this;
    }
    Op &priority(std::string word)
    {
        last().priority = std::move(word);
        return *this;
    }
    Op &kernel_name(std::string name)
    {
        last().name = std::move(name);
        return *this;
    }

    const oflow_op_def *finish()
    {
        exported_.head = {sizeof(oflow_op_def), OFLOW_OP_MAJOR, OFLOW_OP_MINOR};
        exported_.declaration = detail::str(declaration_);
        exported_.domain = detail::str(domain_);
        exported_.version = version_;
        exported_.doc = detail::str(doc_);
        exported_.subject = detail::str(subject_);
        exported_.traits = detail::str(traits_);
        exported_.functions = list(functions_);
        exported_.expression = detail::str(expression_);
        exported_.derivatives = list(derivatives_);
        exported_.shape = detail::str(shape_);
        exported_.dtype = detail::str(dtype_);
        exported_.factors = detail::str(factors_);
        exported_.linear = list(linear_in_);
        exported_.signatures = list(signatures_);
        exported_.gradient = detail::str(gradient_);
        exported_.samples = list(samples_);
        exported_.check = check_ ? &Op::run_check : nullptr;
        exported_.infer_shapes = shapes_ ? &Op::run_shapes : nullptr;
        exported_.infer_dtypes = dtypes_ ? &Op::run_dtypes : nullptr;
        exported_.infer_signatures = get_sbp_ ? &Op::run_signatures : nullptr;
        exported_.grad_rule = grad_rule_ ? &Op::run_grad : nullptr;
        exported_.grad_saves = list(grad_saves_);
        exported_.grad_saves_listed = grad_saves_listed_;
        exported_.user = this;
        for (auto &k : kernels_)
            kernel_list_.push_back(k.finish());
        exported_.kernels = kernel_list_.data();
        exported_.kernel_count = kernel_list_.size();
        exported_.nd_infer = list(nd_infer_);
        exported_.nd_extra = list(nd_extra_);
        exported_.nd_valid = list(nd_valid_);
        exported_.infer_devices = devices_ ? &Op::run_devices : nullptr;
        return &exported_;
    }

  private:
    Op &kernel(const char *device, std::function<void(const Call &)> run, std::string dtypes)
    {
        kernels_.emplace_back();
        kernels_.back().device = device;
        kernels_.back().dtypes = std::move(dtypes);
        kernels_.back().run = std::move(run);
        return *this;
    }
    detail::Kernel &last()
    {
        if (kernels_.empty())
            throw Error("op " + declaration_ + ": add a kernel first");
        return kernels_.back();
    }
    oflow_strs list(const detail::Texts &texts)
    {
        lists_.emplace_back();
        for (auto &t : texts)
            lists_.back().push_back(detail::str(t));
        return {lists_.back().data(), lists_.back().size()};
    }
    static void taken(int32_t status)
    {
        if (status != OFLOW_OK)
            throw Error("oflow refuses what the rule gives");
    }
    template <class F> static int32_t rule(const oflow_infer *i, oflow_message *error, F body)
    {
        return detail::guarded(error, [&] { body(*static_cast<Op *>(i->user), Infer(i)); });
    }
    static int32_t run_check(const oflow_infer *i, const oflow_results *, oflow_message *error)
    {
        return rule(i, error, [](Op &op, const Infer &infer) { op.check_(infer); });
    }
    static int32_t run_shapes(const oflow_infer *i, const oflow_results *r, oflow_message *error)
    {
        return rule(i, error, [r](Op &op, const Infer &infer) {
            size_t o = 0;
            for (auto &shape : op.shapes_(infer))
                taken(r->shape(r->context, o++, shape.data(), shape.size()));
        });
    }
    static int32_t run_dtypes(const oflow_infer *i, const oflow_results *r, oflow_message *error)
    {
        return rule(i, error, [r](Op &op, const Infer &infer) {
            size_t o = 0;
            for (uint32_t dtype : op.dtypes_(infer))
                taken(r->dtype(r->context, o++, dtype));
        });
    }
    static int32_t run_grad(const oflow_grad *g, oflow_message *error)
    {
        return detail::guarded(error, [&] {
            Grad grad(g);
            static_cast<Op *>(g->user)->grad_rule_(grad);
        });
    }
    static int32_t run_signatures(const oflow_infer *i, const oflow_results *r, oflow_message *error)
    {
        return rule(i, error, [r](Op &op, const Infer &infer) {
            for (auto &text : op.get_sbp_(infer))
                taken(r->signature(r->context, detail::str(text)));
        });
    }

    static int32_t run_devices(const oflow_infer *i, const oflow_results *r, oflow_message *error)
    {
        return rule(i, error, [r](Op &op, const Infer &infer) {
            Devices found = op.devices_(infer);
            taken(r->run_on(r->context, found.run_on.code(), uint32_t(found.stream)));
            size_t o = 0;
            for (const Device &device : found.outputs)
                taken(r->device(r->context, o++, device.code()));
        });
    }

    std::string declaration_, domain_, doc_, subject_, traits_, expression_, shape_, dtype_, factors_, gradient_;
    detail::Texts functions_, derivatives_, linear_in_, signatures_, samples_, nd_infer_, nd_extra_, nd_valid_;
    uint32_t version_ = 1;
    std::function<void(const Infer &)> check_;
    std::function<std::vector<Shape>(const Infer &)> shapes_;
    std::function<std::vector<uint32_t>(const Infer &)> dtypes_;
    std::function<std::vector<std::string>(const Infer &)> get_sbp_;
    std::function<void(Grad &)> grad_rule_;
    detail::Texts grad_saves_;
    bool grad_saves_listed_ = false;
    std::function<Devices(const Infer &)> devices_;
    std::deque<detail::Kernel> kernels_;
    std::vector<const oflow_kernel *> kernel_list_;
    std::deque<std::vector<oflow_str>> lists_;
    oflow_op_def exported_{};
};

// The ops of a library.
class Library {
  public:
    // Adds an op; its texts and functions follow.
    Op &op(std::string declaration) { return ops_.emplace_back(std::move(declaration)); }
    // Adds a function that calls ops and functions: function("twice(Tensor x) -> Tensor", [](const oflow::Arguments &a) { return
    // oflow::call("mul", {a.tensor("x"), 2.0}); }).
    Function &function(std::string signature, Function::Body body)
    {
        return functions_.emplace_back(std::move(signature), std::move(body));
    }
    // Adds an op whose attributes are the fields of P (oflow_params.hpp): `leaky(x: float) -> y`.
    template <class P> Op &op(const std::string &declaration) { return op(with_params<P>(declaration)); }
    // The version of the library, for lists.
    Library &version(std::string version)
    {
        version_ = std::move(version);
        return *this;
    }

    // Declares the ops and gives them to oflow. They live as long as the process.
    static const oflow_library *make(const oflow_host *host, const char *name, void (*declare)(Library &))
    {
        detail::host() = host;
        auto *library = new Library();
        library->name_ = name;
        oflow_library &out = library->exported_;
        try {
            declare(*library);
            for (auto &op : library->ops_)
                library->op_list_.push_back(op.finish());
            for (auto &function : library->functions_)
                library->function_list_.push_back(function.finish());
        } catch (const std::exception &e) {
            library->error_ = e.what();
        } catch (...) {
            library->error_ = "an exception that is no std::exception";
        }
        out.head = {sizeof(oflow_library), OFLOW_OP_MAJOR, OFLOW_OP_MINOR};
        out.name = detail::str(library->name_);
        out.version = detail::str(library->version_);
        out.error = detail::str(library->error_);
        out.ops = library->op_list_.data();
        out.op_count = library->op_list_.size();
        out.functions = library->function_list_.data();
        out.function_count = library->function_list_.size();
        return &out;
    }

  private:
    std::string name_, version_, error_;
    std::deque<Op> ops_;
    std::vector<const oflow_op_def *> op_list_;
    std::deque<Function> functions_;
    std::vector<const oflow_function_def *> function_list_;
    oflow_library exported_{};
};

} // namespace oflow

// Declares and exports the ops of a library; `name` is the domain of its ops unless they say another. Once in a library.
#define OFLOW_LIBRARY(name)                                                                                                    \
    static void oflow_declare_ops(::oflow::Library &library);                                                                  \
    extern "C" __attribute__((visibility("default"))) const oflow_library *oflow_op_library(const oflow_host *host)            \
    {                                                                                                                          \
        return ::oflow::Library::make(host, #name, oflow_declare_ops);                                                         \
    }                                                                                                                          \
    static void oflow_declare_ops(::oflow::Library &library)

#endif
