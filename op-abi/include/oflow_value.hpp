// Element types, shapes, devices and parameters in C++. Part of oflow_op.hpp, which includes it.
#ifndef OFLOW_VALUE_HPP
#define OFLOW_VALUE_HPP

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
inline constexpr const char *DTYPE_NAMES[] = {"bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64",
                                              "i16", "u16", "u32", "f8_e4m3fn", "f8_e5m2", "c64", "c128"};
inline constexpr uint32_t DTYPE_COUNT = sizeof DTYPE_NAMES / sizeof *DTYPE_NAMES;

inline const char *dtype_name(uint32_t code) { return code < DTYPE_COUNT ? DTYPE_NAMES[code] : "another type"; }

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
        for (uint32_t code = 0; code < DTYPE_COUNT; ++code)
            if (name == dtype_name(code)) {
                code_ = code;
                return;
            }
        throw Error("unknown dtype '" + name + "'");
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
            throw Error("unknown device '" + name + "'; there are cpu and cuda");
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
    throw Error("unknown parameter '" + name + "'");
}

} // namespace detail

} // namespace oflow

#endif
