// What a C++ library can declare: half floats, lists of lists, conditions of kernels, devices, several mesh axes, a struct of parameters.
#include "oflow_op.hpp"

template <class To, class From> static void converted(const oflow::View &from, const oflow::View &to)
{
    for (int64_t i = 0; i < from.size(); ++i)
        to.data<To>()[i] = To(float(from.data<From>()[i]));
}

static void halves(const oflow::Call &call)
{
    converted<oflow::f16, float>(call.input("x"), call.output("h"));
    converted<oflow::bf16, float>(call.input("x"), call.output("b"));
}

// The sums of the lists, the first and last of which may be empty.
static void nested(const oflow::Call &call)
{
    auto shapes = call.param("shapes").as<std::vector<oflow::Shape>>();
    auto lists = call.param("lists").as<std::vector<std::vector<int>>>();
    float *y = call.output("y").data<float>();
    y[0] = float(shapes.size());
    y[1] = float(lists.size());
    y[2] = y[3] = 0;
    for (auto &shape : shapes)
        for (int d = 0; d < shape.ndim(); ++d)
            y[2] = 10 * y[2] + float(shape[size_t(d)]);
    for (size_t i = 0; i < lists.size(); ++i)
        for (int n : lists[i])
            y[3] += float((i + 1) * n);
    y[4] = call.param("lists") == oflow::Value(lists);
}

// The rule sees them too.
static std::vector<oflow::Shape> from_shapes(const oflow::Infer &infer)
{
    auto shapes = infer.param("shapes").as<std::vector<oflow::Shape>>();
    return {shapes.empty() ? oflow::Shape{5} : shapes[0]};
}

template <int N> static void writes(const oflow::Call &call)
{
    auto y = call.output(0);
    if (y.dtype() == OFLOW_F64)
        std::fill_n(y.data<double>(), y.size(), N);
    else
        std::fill_n(y.data<float>(), y.size(), float(N));
}

static bool odd(const oflow::Infer &infer)
{
    if (infer.param("k").as<int>() == 13)
        throw oflow::Error("13 is not a size");
    return infer.output(0).dim(0) % 2 == 1;
}

static void copies(const oflow::Call &call)
{
    std::copy_n(call.input(0).data<float>(), call.input(0).size(), call.output(0).data<float>());
}

// One SBP on each mesh axis.
static std::string uniform(const std::string &sbp, const oflow::Infer &infer)
{
    std::string all = "[" + sbp;
    for (int a = 1; a < infer.mesh().ndim(); ++a)
        all += ", " + sbp;
    return all + "]";
}

struct Leaky {
    double alpha = 0.01;
    int64_t times = 1;
    std::string mode = "plain";
    std::vector<int64_t> skip;
    std::optional<double> most;
    bool flip = false;
    template <class Fields> static void fields(Fields &f)
    {
        f.runtime("alpha", &Leaky::alpha);
        f.field("times", &Leaky::times);
        f.field("mode", &Leaky::mode);
        f.field("skip", &Leaky::skip);
        f.field("most", &Leaky::most);
        f.field("flip", &Leaky::flip);
    }
    double slope() const { return (flip ? -1.0 : 1.0) * double(times) * alpha; }
};

static void leaky(const oflow::Call &call)
{
    auto p = call.params<Leaky>();
    const double *x = call.input("x").data<double>();
    double *y = call.output("y").data<double>();
    for (int64_t i = 0; i < call.output("y").size(); ++i)
        y[i] = std::min(x[i] >= 0 ? x[i] : p.slope() * x[i], p.most.value_or(1e300));
}

static void leaky_grad(const oflow::Call &call)
{
    auto p = call.params<Leaky>();
    const double *dy = call.input("dy").data<double>(), *x = call.input("x").data<double>();
    double *dx = call.output("dx").data<double>();
    for (int64_t i = 0; i < call.output("dx").size(); ++i)
        dx[i] = dy[i] * (x[i] >= 0 ? (x[i] > p.most.value_or(1e300) ? 0 : 1) : p.slope());
}

static void known_modes(const oflow::Infer &infer)
{
    auto p = infer.params<Leaky>();
    if (p.mode != "plain" || p.alpha != 0.01)
        throw oflow::Error("the mode '" + p.mode + "' is not plain");
}

OFLOW_LIBRARY(said)
{
    library.op("halves(x: f32) -> (h, b)").dtype("f16, bf16").gradient("none").cpu(halves);
    library.op("float_of(x: f16|bf16) -> y")
        .dtype("f32")
        .gradient("none")
        .cpu([](const oflow::Call &c) { converted<float, oflow::f16>(c.input(0), c.output(0)); }, "f16")
        .cpu([](const oflow::Call &c) { converted<float, oflow::bf16>(c.input(0), c.output(0)); }, "bf16");
    library.op("nested(x: f32[1]; lists: int_lists, shapes: shapes = []) -> y").shapes(from_shapes).gradient("none").cpu(nested);

    library.op("picks(x: f32; dtype: dtype = f32, exact: bool = false, k: int = 0, mode: str = \"a\") -> y")
        .dtypes([](const oflow::Infer &infer) { return std::vector<uint32_t>{infer.param("dtype").as<uint32_t>()}; })
        .gradient("none")
        .cpu(writes<1>)
        .cpu(writes<2>)
        .when("y: f64 and not exact")
        .priority("optimized")
        .cpu(writes<3>)
        .when("(k >= 2 and k < 5) or mode in (b, \"c d\")")
        .priority("optimized")
        .cpu(writes<4>)
        .when("y has an odd number of rows", odd)
        .priority("optimized")
        .kernel_name("odd_rows");

    library.op("here(x: f32) -> y").gradient("none").cpu(copies).devices([](const oflow::Infer &call) {
        if (call.device(0) != call.default_device())
            throw oflow::Error("the first input says where a call runs");
        if (call.input(0).dim(0) == 13)
            throw oflow::Error("no device takes 13 rows");
        return oflow::Devices("cpu", {"cpu"}, oflow::Stream::copy);
    });
    library.op("away(x: f32) -> y").gradient("none").cpu(copies).devices([](const oflow::Infer &) {
        return oflow::Devices("cpu", {"cuda"});
    });
    library.op("many(x: f32) -> y").gradient("none").cpu(copies).devices([](const oflow::Infer &) {
        return oflow::Devices("cpu", {"cpu", "cpu"});
    });

    library.op("tiles(x: f32[2]) -> y")
        .signatures({"S(0) -> S(0)"})
        .nd_extra({"[S(0), S(1)] -> [S(0), S(1)]"})
        .gradient("none")
        .samples({"f32[4, 6]"})
        .cpu(copies);
    library.op("listed(x: f32[2]) -> y").nd_infer({"[S(1), S(0)] -> [S(1), S(0)]"}).gradient("none").samples({"f32[4, 6]"}).cpu(copies);
    library.op("apart(x: f32[2]) -> y")
        .signatures({"S(0) -> S(0)", "S(1) -> S(1)"})
        .nd_valid({"not [S(0), S(1)] -> *"})
        .gradient("none")
        .samples({"f32[4, 6]"})
        .cpu(copies);

    // The layout that is asked for; of a whole input columns, unless layouts are kept; else what costs least.
    library.op("takes(x: f32[2]) -> y")
        .signatures({"S(0) -> S(0)", "S(1) -> S(1)"})
        .nd_choose([](const oflow::Infer &infer) -> std::optional<std::string> {
            if (auto asked = infer.asked())
                return *asked + " -> " + *asked;
            if (infer.keeps() || infer.sbp(0) != uniform("B", infer))
                return std::nullopt;
            return uniform("S(1)", infer) + " -> " + uniform("S(1)", infer);
        })
        .gradient("none")
        .samples({"f32[4, 6]"})
        .cpu(copies);
    library.op("lists(x: f32[2]) -> y")
        .nd_infer_rule([](const oflow::Infer &infer) -> std::vector<std::string> {
            bool rows = infer.sbp(0).find("S(0)") != std::string::npos;
            std::string sbp = infer.asked().value_or(rows ? infer.sbp(0) : uniform("S(1)", infer));
            return {sbp + " -> " + sbp};
        })
        .gradient("none")
        .samples({"f32[4, 6]"})
        .cpu(copies);

    library.op<Leaky>("leaky(x: f64) -> y")
        .signatures({"S(0) -> S(0)"})
        .gradient("x = said.leaky_grad(grad y, x; " + oflow::param_names<Leaky>() + ")")
        .check(known_modes)
        .samples({"f64[7]", "f64[7]; alpha=0.5, times=3, flip=true"})
        .cpu(leaky);
    library.op<Leaky>("leaky_grad(dy: f64, x: f64) -> dx").signatures({"S(0), S(0) -> S(0)"}).cpu(leaky_grad);
}
