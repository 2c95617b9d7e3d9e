// Calls of oflow's ops and functions, and primitives that kernels launch. Part of oflow_op.hpp, which includes it.
#ifndef OFLOW_CALL_HPP
#define OFLOW_CALL_HPP

#include <cstddef>
#include <initializer_list>
#include <optional>

namespace oflow {

namespace detail {

// Where oflow says why it refuses something.
class Answer {
  public:
    Answer() : message_{{sizeof(oflow_message), OFLOW_OP_MAJOR, OFLOW_OP_MINOR}, text_, sizeof text_, 0} {}
    Answer(const Answer &) = delete;
    Answer &operator=(const Answer &) = delete;
    operator oflow_message *() { return &message_; }
    // Throws what oflow said.
    void check(int32_t status) const
    {
        if (status != OFLOW_OK)
            throw Error(std::string((const char *)text_, message_.len));
    }

  private:
    uint8_t text_[8192];
    oflow_message message_;
};

template <class T> oflow_head head_of() { return {sizeof(T), OFLOW_OP_MAJOR, OFLOW_OP_MINOR}; }

// oflow's functions; an older oflow has fewer.
inline const oflow_api &api()
{
    const oflow_host *h = host();
    if (!h || h->head.size < offsetof(oflow_host, api) + sizeof h->api || !h->api)
        throw Error("this oflow is older than the library: it has no calls of ops");
    return *h->api;
}

} // namespace detail

// A tensor of the program, local or global: a counted reference, so copies are cheap and are one tensor.
class TensorHandle {
  public:
    TensorHandle() = default;
    TensorHandle(const TensorHandle &o) : number_(o.number_)
    {
        if (number_) {
            detail::Answer answer;
            answer.check(detail::api().retain(number_, answer));
        }
    }
    TensorHandle(TensorHandle &&o) noexcept : number_(std::exchange(o.number_, 0)) {}
    TensorHandle &operator=(TensorHandle o) noexcept
    {
        std::swap(number_, o.number_);
        return *this;
    }
    ~TensorHandle()
    {
        if (number_)
            detail::host()->api->release(number_, nullptr);
    }
    // Takes over a number that is owned; `lent` owns it once more.
    static TensorHandle owned(oflow_tensor number)
    {
        TensorHandle t;
        t.number_ = number;
        return t;
    }
    static TensorHandle lent(oflow_tensor number)
    {
        TensorHandle borrowed = owned(number), t;
        try {
            t = TensorHandle(static_cast<const TensorHandle &>(borrowed));
        } catch (...) {
            borrowed.number_ = 0;
            throw;
        }
        borrowed.number_ = 0;
        return t;
    }

    // Whether there is a tensor: optional ones may be left out.
    bool given() const { return number_ != 0; }
    // Logical sizes.
    Shape shape() const
    {
        oflow_tensor_info i = info();
        return Shape(i.dims, i.dims + i.rank);
    }
    int ndim() const { return int(info().rank); }
    int64_t numel() const
    {
        int64_t n = 1;
        for (int64_t d : shape())
            n *= d;
        return n;
    }
    DType dtype() const
    {
        oflow_tensor_info i = info();
        return DType(i.dtype, i.scale, i.zero_point);
    }
    // The kind of device: "cpu", "cuda", ...
    std::string device() const { return string_of(info().device); }
    bool is_global() const { return info().global != 0; }
    bool requires_grad() const { return info().requires_grad != 0; }
    // The nd-SBP ("[S(0), B]") and the placement of a global tensor, as text; empty for a local one.
    std::string sbp() const { return string_of(info().sbp); }
    std::string placement() const { return string_of(info().placement); }
    oflow_tensor number() const { return number_; }

  private:
    oflow_tensor_info info() const
    {
        oflow_tensor_info found{};
        found.head = detail::head_of<oflow_tensor_info>();
        detail::Answer answer;
        answer.check(detail::api().describe(number_, &found, answer));
        return found;
    }
    oflow_tensor number_ = 0;
};

// An nd-SBP as text: "[S(0), B]".
struct Sbp {
    std::string text;
    explicit Sbp(std::string t) : text(std::move(t)) {}
};

// Where a new tensor lies: on a kind of device, or as another tensor does.
struct Target {
    std::string device;
    TensorHandle like;
    explicit Target(Device d) : device(d.str()) {}
    explicit Target(TensorHandle t) : like(std::move(t)) {}
};

// An argument of a function.
class Arg {
  public:
    Arg(std::nullopt_t) {}
    Arg(TensorHandle t) : kind_(t.given() ? OFLOW_ARG_TENSOR : OFLOW_ARG_NONE)
    {
        if (t.given())
            tensors_.push_back(std::move(t));
    }
    Arg(std::vector<TensorHandle> all) : kind_(OFLOW_ARG_TENSORS), tensors_(std::move(all)) {}
    Arg(std::initializer_list<TensorHandle> all) : kind_(OFLOW_ARG_TENSORS), tensors_(all) {}
    Arg(Value v) : kind_(v.given() ? OFLOW_ARG_VALUE : OFLOW_ARG_NONE), value_(std::move(v)) {}
    Arg(DType d) : kind_(OFLOW_ARG_VALUE), as_(OFLOW_ATTR_DTYPE), value_(uint32_t(d)) {}
    Arg(const std::vector<DType> &all) : kind_(OFLOW_ARG_VALUE), as_(OFLOW_ATTR_DTYPES)
    {
        std::vector<int64_t> codes;
        for (const DType &d : all)
            codes.push_back(uint32_t(d));
        value_ = codes;
    }
    Arg(Device d) : kind_(OFLOW_ARG_VALUE), as_(OFLOW_ATTR_DEVICE), value_(d.str()) {}
    Arg(Sbp s) : kind_(OFLOW_ARG_VALUE), as_(OFLOW_ATTR_SBP), value_(std::move(s.text)) {}
    Arg(Target t) : kind_(OFLOW_ARG_TARGET), as_(OFLOW_ATTR_DEVICE)
    {
        if (t.like.given())
            tensors_.push_back(std::move(t.like));
        else
            value_ = std::move(t.device);
    }
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Arg(T x) : Arg(Value(x)) {}
    Arg(const char *x) : Arg(Value(x)) {}
    Arg(std::string x) : Arg(Value(std::move(x))) {}
    Arg(const Shape &x) : Arg(Value(static_cast<const std::vector<int64_t> &>(x))) {}
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_convertible_v<T, std::string>, int> = 0>
    Arg(const std::vector<T> &x) : Arg(Value(x))
    {
    }
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_convertible_v<T, std::string>, int> = 0>
    Arg(std::initializer_list<T> x) : Arg(Value(x))
    {
    }

    uint32_t kind() const { return kind_; }
    // The kind of attribute, 0 where the value tells.
    uint32_t as() const { return as_; }
    const Value &value() const { return value_; }
    const std::vector<TensorHandle> &tensors() const { return tensors_; }

  private:
    uint32_t kind_ = OFLOW_ARG_NONE, as_ = 0;
    std::vector<TensorHandle> tensors_;
    Value value_;
};

// An argument by name: {"alpha", 0.5}.
struct Named {
    std::string name;
    Arg value;
    Named(std::string n, Arg v) : name(std::move(n)), value(std::move(v)) {}
};

namespace detail {

// Values as structs of C; they live as long as this.
class Packed {
  public:
    Packed() = default;
    Packed(const Packed &) = delete;
    Packed &operator=(const Packed &) = delete;

    const oflow_attr *attr(const std::string &name, const Value &value, uint32_t as)
    {
        names_.push_back(name);
        attrs_.emplace_back();
        oflow_attr &a = attrs_.back();
        a = {};
        a.head = head_of<oflow_attr>();
        a.name = str(names_.back());
        const Value::Held &held = value.held();
        if (std::get_if<std::monostate>(&held))
            a.kind = OFLOW_ATTR_ABSENT;
        else if (auto *i = std::get_if<int64_t>(&held))
            a.kind = OFLOW_ATTR_INT, a.integer = *i;
        else if (auto *x = std::get_if<double>(&held))
            a.kind = OFLOW_ATTR_FLOAT, a.real = *x;
        else if (auto *b = std::get_if<bool>(&held))
            a.kind = OFLOW_ATTR_BOOL, a.integer = *b;
        else if (auto *t = std::get_if<std::string>(&held)) {
            names_.push_back(*t);
            a.kind = OFLOW_ATTR_STR, a.text = str(names_.back());
        } else if (auto *all = std::get_if<std::vector<int64_t>>(&held))
            a.kind = OFLOW_ATTR_INTS, integers(a, *all);
        else if (auto *all = std::get_if<std::vector<double>>(&held)) {
            reals_.push_back(*all);
            a.kind = OFLOW_ATTR_FLOATS, a.reals = reals_.back().data(), a.count = all->size();
        } else if (auto *all = std::get_if<std::vector<bool>>(&held))
            a.kind = OFLOW_ATTR_BOOLS, integers(a, std::vector<int64_t>(all->begin(), all->end()));
        else if (auto *all = std::get_if<std::vector<std::string>>(&held)) {
            texts_.emplace_back();
            for (const std::string &t : *all) {
                names_.push_back(t);
                texts_.back().push_back(str(names_.back()));
            }
            a.kind = OFLOW_ATTR_STRS, a.texts = texts_.back().data(), a.count = all->size();
        } else if (auto *lists = std::get_if<std::vector<std::vector<int64_t>>>(&held)) {
            std::vector<int64_t> members;
            lengths_.emplace_back();
            for (const std::vector<int64_t> &one : *lists) {
                members.insert(members.end(), one.begin(), one.end());
                lengths_.back().push_back(int64_t(one.size()));
            }
            integers(a, members);
            a.kind = OFLOW_ATTR_INT_LISTS, a.lengths = lengths_.back().data(), a.count = lists->size();
        } else
            throw Error("'" + name + "' is a value that a call cannot be given");
        if (as)
            a.kind = as;
        return &a;
    }
    const oflow_arg *arg(const std::string &name, const Arg &given)
    {
        names_.push_back(name);
        oflow_arg a{};
        a.head = head_of<oflow_arg>();
        a.name = str(names_.back());
        a.kind = given.kind();
        numbers_.emplace_back();
        for (const TensorHandle &t : given.tensors())
            numbers_.back().push_back(t.number());
        a.tensors = numbers_.back().data();
        a.count = numbers_.back().size();
        a.value = attr(name, given.value(), given.value().given() ? given.as() : 0);
        args_.push_back(a);
        return &args_.back();
    }
    // Arguments by name that are no tensors.
    std::vector<const oflow_attr *> attrs(const std::vector<Named> &named)
    {
        std::vector<const oflow_attr *> all;
        for (const Named &n : named) {
            if (!n.value.tensors().empty())
                throw Error("'" + n.name + "' is a tensor: give it by position");
            all.push_back(attr(n.name, n.value.value(), n.value.value().given() ? n.value.as() : 0));
        }
        return all;
    }

  private:
    static oflow_str str(const std::string &s) { return {(const uint8_t *)s.data(), s.size()}; }
    void integers(oflow_attr &a, std::vector<int64_t> all)
    {
        integers_.push_back(std::move(all));
        a.integers = integers_.back().data();
        a.count = integers_.back().size();
    }
    std::deque<std::string> names_;
    std::deque<oflow_attr> attrs_;
    std::deque<oflow_arg> args_;
    std::deque<std::vector<oflow_tensor>> numbers_;
    std::deque<std::vector<int64_t>> integers_;
    std::deque<std::vector<double>> reals_;
    std::deque<std::vector<int64_t>> lengths_;
    std::deque<std::vector<oflow_str>> texts_;
};

inline oflow_returned run(const std::string &name, const std::vector<Arg> &args, const std::vector<Named> &named)
{
    Packed packed;
    std::vector<const oflow_arg *> all;
    for (const Arg &a : args)
        all.push_back(packed.arg("", a));
    for (const Named &n : named)
        all.push_back(packed.arg(n.name, n.value));
    oflow_function_call call{};
    call.head = head_of<oflow_function_call>();
    call.function = {(const uint8_t *)name.data(), name.size()};
    call.args = all.data();
    call.arg_count = all.size();
    oflow_returned found{};
    found.head = head_of<oflow_returned>();
    Answer answer;
    answer.check(api().call(&call, &found, answer));
    return found;
}

} // namespace detail

// Calls a function or an op of oflow by name, those of libraries too: call("softmax", {x}, {{"dim", -1}}). Arguments by position, then
// by name. Gradients flow through it, and global tensors stay global. Throws what oflow refuses, with oflow's text. Not in kernels and
// rules, which run in the middle of a call.
inline std::vector<TensorHandle> call(const std::string &name, const std::vector<Arg> &args, const std::vector<Named> &named = {})
{
    oflow_returned found = detail::run(name, args, named);
    std::vector<TensorHandle> all;
    all.reserve(found.count);
    for (size_t i = 0; i < found.count; ++i)
        all.push_back(TensorHandle::owned(found.tensors[i]));
    if (found.value)
        throw Error(name + " gives a value that is not a tensor: call it with call_value");
    return all;
}

// Calls a function whose result is not a tensor: call_value("numel", {x}).
inline Value call_value(const std::string &name, const std::vector<Arg> &args, const std::vector<Named> &named = {})
{
    oflow_returned found = detail::run(name, args, named);
    for (size_t i = 0; i < found.count; ++i)
        TensorHandle::owned(found.tensors[i]);
    if (!found.value)
        throw Error(name + " gives tensors: call it with call");
    return detail::value_of(*found.value);
}

// Memory of a call as a primitive sees it: a view of the kernel, or a part of one.
class MemoryView {
  public:
    // Left out, for an optional input.
    MemoryView() = default;
    MemoryView(const View &v) : MemoryView(v.data(), v.dtype(), v.shape(), v.strides()) {}
    // Elements in row-major order.
    MemoryView(void *data, DType dtype, Shape shape) : MemoryView(data, dtype, shape, row_major(shape)) {}
    MemoryView(void *data, DType dtype, Shape shape, Shape strides)
        : given_(true), data_(data), dtype_(dtype), shape_(std::move(shape)), strides_(std::move(strides))
    {
        if (shape_.size() != strides_.size())
            throw Error("a view has as many strides as sizes");
    }
    bool given() const { return given_; }
    DType dtype() const { return DType(dtype_); }
    const Shape &shape() const { return shape_; }
    oflow_view raw() const
    {
        oflow_view v{};
        v.head = detail::head_of<oflow_view>();
        v.data = data_;
        v.dtype = dtype_;
        v.rank = uint32_t(shape_.size());
        v.dims = shape_.data();
        v.strides = strides_.data();
        return v;
    }

  private:
    static Shape row_major(const Shape &shape)
    {
        Shape strides(shape.size());
        int64_t step = 1;
        for (size_t d = shape.size(); d-- > 0;) {
            strides[d] = step;
            if (__builtin_mul_overflow(step, shape[d] > 1 ? shape[d] : 1, &step))
                throw Error("a view of more elements than there are addresses");
        }
        return strides;
    }
    bool given_ = false;
    void *data_ = nullptr;
    uint32_t dtype_ = OFLOW_F32;
    Shape shape_, strides_;
};

// Shape and element type of an input of a primitive.
struct TypeSpec {
    DType dtype;
    Shape shape;
    TypeSpec(DType d, Shape s) : dtype(d), shape(std::move(s)) {}
    TypeSpec(const Type &t) : dtype(t.dtype()), shape(t.shape()) {}
    TypeSpec(const View &v) : dtype(v.dtype()), shape(v.shape()) {}
    TypeSpec(const MemoryView &v) : dtype(v.dtype()), shape(v.shape()) {}
};

// Asks for a primitive: the kernel of an op on a kind of device for inputs of these types. Gives the bytes of scratch memory that a launch
// needs, or nothing where there is no such kernel. A rule for the size of a workspace may ask too.
inline std::optional<size_t> primitive(const std::string &op, Device device, const std::vector<TypeSpec> &inputs,
                                       const std::vector<Named> &attrs = {})
{
    detail::Packed packed;
    std::vector<const oflow_attr *> values = packed.attrs(attrs);
    std::vector<oflow_type> types;
    for (const TypeSpec &t : inputs) {
        oflow_type type{};
        type.head = detail::head_of<oflow_type>();
        type.dtype = t.dtype;
        type.rank = uint32_t(t.shape.size());
        type.dims = t.shape.data();
        types.push_back(type);
    }
    std::vector<const oflow_type *> all;
    for (const oflow_type &t : types)
        all.push_back(&t);
    int64_t scratch = -1;
    detail::Answer answer;
    answer.check(detail::api().primitive({(const uint8_t *)op.data(), op.size()}, device == Device("cuda") ? OFLOW_CUDA : OFLOW_CPU,
                                         all.data(), all.size(), values.data(), values.size(), &scratch, answer));
    return scratch < 0 ? std::nullopt : std::optional<size_t>(size_t(scratch));
}

// Launches a primitive on memory of the call: on this thread, or on the stream of a kernel for a GPU. Inputs lie in the call's inputs,
// outputs and workspace; outputs and scratch memory in its outputs and workspace. Attributes are the op's, by name. On a CPU scratch
// memory may be left out.
//
//     oflow::launch(call, "matmul", {call.input("x"), call.input("w")}, {call.output("y")}, {{"transpose_b", true}});
inline void launch(const Call &call, const std::string &op, const std::vector<MemoryView> &inputs, const std::vector<MemoryView> &outputs,
                   const std::vector<Named> &attrs = {}, const MemoryView &scratch = {})
{
    const oflow_call *c = call.raw();
    if (c->head.size < offsetof(oflow_call, launch) + sizeof c->launch || !c->launch)
        throw Error("this oflow is older than the library: it has no primitives");
    detail::Packed packed;
    std::vector<const oflow_attr *> values = packed.attrs(attrs);
    std::vector<oflow_view> views;
    views.reserve(inputs.size() + outputs.size());
    auto listed = [&views](const std::vector<MemoryView> &from) {
        std::vector<const oflow_view *> all;
        for (const MemoryView &v : from) {
            if (v.given())
                views.push_back(v.raw());
            all.push_back(v.given() ? &views.back() : nullptr);
        }
        return all;
    };
    std::vector<const oflow_view *> from = listed(inputs), to = listed(outputs);
    oflow_view room = scratch.raw();
    oflow_launch l{};
    l.head = detail::head_of<oflow_launch>();
    l.op = {(const uint8_t *)op.data(), op.size()};
    l.inputs = from.data();
    l.input_count = from.size();
    l.outputs = to.data();
    l.output_count = to.size();
    l.attrs = values.data();
    l.attr_count = values.size();
    l.scratch = scratch.given() ? &room : nullptr;
    detail::Answer answer;
    answer.check(c->launch(c->context, &l, answer));
}

} // namespace oflow

#endif
