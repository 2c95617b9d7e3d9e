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
#include <optional>
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
#include "oflow_value.hpp"
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
            throw Error("'" + name() + "' has " + std::to_string(rank()) + " dims, so dim " + std::to_string(d) + " is out of range");
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
        throw Error(std::string("unknown ") + what + " " + show(which));
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
            throw Error("'" + name() + "' has " + std::to_string(rank()) + " dims, so dim " + std::to_string(d) + " is out of range");
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
            throw Error("unknown input " + std::to_string(i));
        return Type(i_->inputs[i]);
    }
    // Known to the size of a workspace and to the condition of a kernel only.
    Type output(size_t i) const
    {
        if (i >= i_->output_count)
            throw Error("unknown output " + std::to_string(i) + " here");
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
    // For nd_infer_rule and nd_choose: the sizes of the mesh axes; the present nd-SBP of an input, as "[S(0), B]"; the one that output 0 is
    // to have in the end, if one is said; whether inputs are to stay as they are where a signature takes them so.
    Shape mesh() const
    {
        sees_mesh("the mesh");
        return Shape(i_->mesh, i_->mesh + i_->mesh_axes);
    }
    std::string sbp(size_t i) const
    {
        sees_mesh("the layout");
        if (!has_input(i))
            throw Error("input " + std::to_string(i) + " is not there, so it has no layout");
        return string_of(i_->sbps[i]);
    }
    std::optional<std::string> asked() const
    {
        sees_mesh("the layout asked for");
        return i_->asked.len ? std::optional<std::string>(string_of(i_->asked)) : std::nullopt;
    }
    bool keeps() const
    {
        sees_mesh("the scope");
        return i_->keep != 0;
    }

  private:
    void sees_mesh(const char *what) const
    {
        if (!i_->sbps)
            throw Error(std::string(what) + " of a call is known to nd_infer_rule and nd_choose only");
    }
    const oflow_infer *i_;
};

namespace detail {

using Texts = std::vector<std::string>;

inline oflow_str str(const std::string &s) { return {(const uint8_t *)s.data(), s.size()}; }

// Runs a callback's body and tells its error.
template <class F> int32_t guarded(oflow_message *error, F body) noexcept
{
    int32_t status = OFLOW_PANIC;
    const char *why = "an exception that is not a std::exception";
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
    // Signatures over all axes of a mesh by code, in the place of nd_infer: "[S(0), B] -> [S(0), B]". All tensors B is always one more.
    Op &nd_infer_rule(std::function<std::vector<std::string>(const Infer &)> f)
    {
        nd_infer_rule_ = std::move(f);
        return *this;
    }
    // Takes one of the op's signatures over all axes of a mesh for a call; std::nullopt leaves the choice to oflow.
    Op &nd_choose(std::function<std::optional<std::string>(const Infer &)> f)
    {
        nd_choose_ = std::move(f);
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
        exported_.nd_infer_rule = nd_infer_rule_ ? &Op::run_nd_infer : nullptr;
        exported_.nd_choose = nd_choose_ ? &Op::run_nd_choose : nullptr;
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
    static int32_t run_nd_infer(const oflow_infer *i, const oflow_results *r, oflow_message *error)
    {
        return rule(i, error, [r](Op &op, const Infer &infer) {
            for (auto &text : op.nd_infer_rule_(infer))
                taken(r->signature(r->context, detail::str(text)));
        });
    }
    static int32_t run_nd_choose(const oflow_infer *i, const oflow_results *r, oflow_message *error)
    {
        return rule(i, error, [r](Op &op, const Infer &infer) {
            if (auto text = op.nd_choose_(infer))
                taken(r->signature(r->context, detail::str(*text)));
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
    std::function<std::vector<std::string>(const Infer &)> get_sbp_, nd_infer_rule_;
    std::function<std::optional<std::string>(const Infer &)> nd_choose_;
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
            library->error_ = "an exception that is not a std::exception";
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
