// Functions of a library that call ops, and gradient rules by code. Part of oflow_op.hpp, which includes it.
#ifndef OFLOW_FUNCTION_HPP
#define OFLOW_FUNCTION_HPP

namespace oflow {

// The arguments of a call of a function, by parameter. Defaults are filled in.
class Arguments {
  public:
    explicit Arguments(const oflow_function_args *a) : a_(a) {}
    std::string function() const { return string_of(a_->function); }
    // Whether an optional parameter is given.
    bool has(const std::string &name) const { return find(name).kind != OFLOW_ARG_NONE; }
    TensorHandle tensor(const std::string &name) const
    {
        const oflow_arg &a = find(name);
        if (a.kind != OFLOW_ARG_TENSOR)
            throw Error("'" + name + "' is not a tensor, or was left out");
        return TensorHandle::lent(a.tensors[0]);
    }
    std::vector<TensorHandle> tensors(const std::string &name) const
    {
        const oflow_arg &a = find(name);
        if (a.kind != OFLOW_ARG_TENSORS)
            throw Error("'" + name + "' is not a list of tensors, or was left out");
        std::vector<TensorHandle> all;
        for (size_t i = 0; i < a.count; ++i)
            all.push_back(TensorHandle::lent(a.tensors[i]));
        return all;
    }
    // A parameter that is no tensor; without a value where it was left out.
    Value param(const std::string &name) const
    {
        const oflow_arg &a = find(name);
        if (a.kind == OFLOW_ARG_TENSOR || a.kind == OFLOW_ARG_TENSORS)
            throw Error("'" + name + "' is a tensor");
        return a.kind == OFLOW_ARG_VALUE && a.value ? detail::value_of(*a.value) : Value();
    }

  private:
    const oflow_arg &find(const std::string &name) const
    {
        for (size_t i = 0; i < a_->arg_count; ++i)
            if (string_of(a_->args[i]->name) == name)
                return *a_->args[i];
        throw Error("unknown parameter '" + name + "'");
    }
    const oflow_function_args *a_;
};

// Result of a function: a tensor, tensors, or a value that is not a tensor, as its signature says.
class Results {
  public:
    Results() = default;
    Results(TensorHandle t) { tensors_.push_back(std::move(t)); }
    Results(std::vector<TensorHandle> all) : tensors_(std::move(all)) {}
    Results(std::initializer_list<TensorHandle> all) : tensors_(all) {}
    Results(Value v) : value_(std::move(v)) {}
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, std::string>, int> = 0>
    Results(T x) : value_(std::move(x))
    {
    }
    Results(const Shape &x) : value_(static_cast<const std::vector<int64_t> &>(x)) {}
    const std::vector<TensorHandle> &tensors() const { return tensors_; }
    const Value &value() const { return value_; }

  private:
    std::vector<TensorHandle> tensors_;
    Value value_;
};

// A function that calls ops and other functions.
class Function {
  public:
    using Body = std::function<Results(const Arguments &)>;
    Function(std::string signature, Body body) : signature_(std::move(signature)), body_(std::move(body)) {}
    Function(const Function &) = delete;
    Function &operator=(const Function &) = delete;
    Function &doc(std::string text)
    {
        doc_ = std::move(text);
        return *this;
    }
    // Leaves it out of lists.
    Function &hidden()
    {
        hidden_ = 1;
        return *this;
    }

    const oflow_function_def *finish()
    {
        exported_.head = detail::head_of<oflow_function_def>();
        exported_.signature = detail::str(signature_);
        exported_.doc = detail::str(doc_);
        exported_.hidden = hidden_;
        exported_.run = body_ ? &Function::run : nullptr;
        exported_.user = this;
        return &exported_;
    }

  private:
    static int32_t run(const oflow_function_args *args, const oflow_function_results *results, oflow_message *error)
    {
        return detail::guarded(error, [&] {
            Results made = static_cast<Function *>(args->user)->body_(Arguments(args));
            for (const TensorHandle &t : made.tensors())
                if (results->tensor(results->context, t.number()) != OFLOW_OK)
                    throw Error("a result is not a tensor");
            if (made.value().given()) {
                detail::Packed packed;
                if (results->value(results->context, packed.attr("", made.value(), 0)) != OFLOW_OK)
                    throw Error("oflow refuses the value");
            }
        });
    }
    std::string signature_, doc_;
    Body body_;
    uint32_t hidden_ = 0;
    oflow_function_def exported_{};
};

// A value in a gradient rule.
class GradValue {
  public:
    explicit GradValue(uint32_t number = OFLOW_NO_VALUE) : number_(number) {}
    // Whether there is one: no gradient may have reached an output, and optional inputs may be left out.
    bool given() const { return number_ != OFLOW_NO_VALUE; }
    explicit operator bool() const { return given(); }
    uint32_t number() const { return number_; }

  private:
    uint32_t number_;
};

// An input or an output, by position or by name.
struct Which {
    std::string name;
    size_t index = 0;
    Which(int i) : index(i < 0 ? ~size_t(0) : size_t(i)) {}
    Which(const char *n) : name(n) {}
    Which(std::string n) : name(std::move(n)) {}
};

// What a gradient rule is given. It calls ops and functions on values; what it calls can be differentiated again.
class Grad {
  public:
    explicit Grad(const oflow_grad *g) : g_(g) {}
    std::string op() const { return string_of(g_->op); }
    // The gradient of an output; not given if nothing depends on it.
    GradValue grad(const Which &which) const { return get(OFLOW_GRAD_GRADIENT, which); }
    // An input; not given if it was left out. The rule must say that it saves it.
    GradValue input(const Which &which) const { return get(OFLOW_GRAD_INPUT, which); }
    GradValue output(const Which &which) const { return get(OFLOW_GRAD_OUTPUT, which); }
    size_t input_count() const { return g_->input_count; }
    // Whether an input wants a gradient.
    bool needs(const Which &which) const
    {
        uint32_t needed = 0;
        detail::Answer answer;
        answer.check(g_->needs(g_->context, detail::str(which.name), which.index, &needed, answer));
        return needed != 0;
    }
    Value param(const std::string &name) const { return detail::find(g_->attrs, g_->attr_count, name); }
    // Calls an op or a function of one result: values in order, other arguments by name.
    GradValue call(const std::string &name, const std::vector<GradValue> &inputs, const std::vector<Named> &attrs = {}) const
    {
        std::vector<GradValue> all = emit(name, inputs, attrs);
        if (all.empty())
            throw Error(name + " gives no result");
        return all[0];
    }
    // The same, with all results.
    std::vector<GradValue> emit(const std::string &name, const std::vector<GradValue> &inputs, const std::vector<Named> &attrs = {}) const
    {
        detail::Packed packed;
        std::vector<const oflow_attr *> values = packed.attrs(attrs);
        std::vector<uint32_t> numbers;
        for (GradValue v : inputs)
            numbers.push_back(v.number());
        const uint32_t *results = nullptr;
        size_t count = 0;
        detail::Answer answer;
        answer.check(g_->call(g_->context, detail::str(name), numbers.data(), numbers.size(), values.data(), values.size(), &results,
                              &count, answer));
        std::vector<GradValue> all;
        for (size_t i = 0; i < count; ++i)
            all.push_back(GradValue(results[i]));
        return all;
    }
    // Says the gradient of an input.
    void set(const Which &which, GradValue value) const
    {
        detail::Answer answer;
        answer.check(g_->set(g_->context, detail::str(which.name), which.index, value.number(), answer));
    }
    // Logical sizes and element type of a value.
    Shape shape(GradValue value) const
    {
        oflow_type t = type(value);
        return Shape(t.dims, t.dims + t.rank);
    }
    DType dtype(GradValue value) const
    {
        oflow_type t = type(value);
        return DType(t.dtype, t.scale, t.zero_point);
    }

  private:
    GradValue get(uint32_t what, const Which &which) const
    {
        uint32_t value = OFLOW_NO_VALUE;
        detail::Answer answer;
        answer.check(g_->get(g_->context, what, detail::str(which.name), which.index, &value, answer));
        return GradValue(value);
    }
    oflow_type type(GradValue value) const
    {
        oflow_type found{};
        found.head = detail::head_of<oflow_type>();
        detail::Answer answer;
        answer.check(g_->describe(g_->context, value.number(), &found, answer));
        return found;
    }
    const oflow_grad *g_;
};

} // namespace oflow

#endif
