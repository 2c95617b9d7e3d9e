// The attributes of an op as a struct: one type for the op and its gradient op (PopXL's parameter struct). Part of oflow_op.hpp.
//
//     struct Leaky {
//         double alpha = 0.01;
//         int64_t times = 1;
//         template <class Fields> static void fields(Fields &f)
//         {
//             f.runtime("alpha", &Leaky::alpha);
//             f.field("times", &Leaky::times);
//         }
//     };
//
//     library.op<Leaky>("leaky(x: f32) -> y")                       // leaky(x: f32; times: int = 1, alpha: runtime float = 0.01) -> y
//         .gradient("x = mine.leaky_grad(grad y, x; " + oflow::param_names<Leaky>() + ")")
//         .cpu([](const oflow::Call &call) { auto p = call.params<Leaky>(); ... });
//
// Values of the struct that it is made with are the defaults. `required` declares a field without one, `runtime` a number that plans do
// not depend on. A std::optional field may be left out. Types: bool, integers, float, double, std::string, and std::vector of int64_t,
// double, bool, std::string or Shape.
#ifndef OFLOW_PARAMS_HPP
#define OFLOW_PARAMS_HPP

#include <cmath>
#include <optional>

namespace oflow {
namespace detail {

// Types of fields: the word of the type in a declaration, and the text of a default.
template <class T> struct param_type {
    static_assert(std::is_arithmetic_v<T>, "a field is a bool, an integer, a float, a std::string, or a std::vector or std::optional of such");
    static std::string word() { return std::is_same_v<T, bool> ? "bool" : std::is_floating_point_v<T> ? "float" : "int"; }
    static std::string text(T x)
    {
        if constexpr (std::is_same_v<T, bool>)
            return x ? "true" : "false";
        else if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(x))
                throw Error("the default of a float is not a finite number");
            char digits[40];
            // So many digits say which double it is.
            std::snprintf(digits, sizeof digits, "%.17g", double(x));
            return digits;
        } else
            return std::to_string(x);
    }
    static T read(const Value &v) { return v.as<T>(); }
};
template <> struct param_type<std::string> {
    static std::string word() { return "str"; }
    static std::string text(const std::string &x)
    {
        for (char c : x)
            if (c == '"' || static_cast<unsigned char>(c) < ' ')
                throw Error("the default '" + x + "' has a quote or a control character in it");
        return '"' + x + '"';
    }
    static std::string read(const Value &v) { return v.as<std::string>(); }
};
template <> struct param_type<Shape> {
    static std::string word() { return "shape"; }
    static std::string text(const Shape &x)
    {
        std::string all;
        for (int64_t n : x)
            all += (all.empty() ? "" : ", ") + std::to_string(n);
        return "[" + all + "]";
    }
    static Shape read(const Value &v) { return v.as<Shape>(); }
};
template <class T> struct param_type<std::vector<T>> {
    static std::string word() { return param_type<T>::word() + "s"; }
    static std::string text(const std::vector<T> &x)
    {
        std::string all;
        for (const T &i : x)
            all += (all.empty() ? "" : ", ") + param_type<T>::text(i);
        return "[" + all + "]";
    }
    static std::vector<T> read(const Value &v) { return v.as<std::vector<T>>(); }
};
template <class T> struct param_type<std::optional<T>> {
    static std::string word() { return param_type<T>::word(); }
    static std::string text(const std::optional<T> &x)
    {
        if (x)
            throw Error("a field that may be left out has no default");
        return {};
    }
    static std::optional<T> read(const Value &v) { return v.given() ? std::optional<T>(param_type<T>::read(v)) : std::nullopt; }
};
template <class T> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;

// Writes the attributes of a declaration, those of the plan before those of the call, and their names.
template <class P> struct ParamText {
    P made{};
    std::string plan, call, names;
    template <class T> void field(const char *name, T P::*at) { plan += one(name, at, "", false); }
    template <class T> void required(const char *name, T P::*at) { plan += one(name, at, "", true); }
    template <class T> void runtime(const char *name, T P::*at)
    {
        static_assert(std::is_arithmetic_v<T>, "a runtime attribute is a number");
        call += one(name, at, "runtime ", false);
    }

  private:
    template <class T> std::string one(const char *name, T P::*at, const char *how, bool required)
    {
        names += (names.empty() ? "" : ", ") + std::string(name);
        std::string text = std::string(", ") + name + (is_optional<T> ? "?: " : ": ") + how + param_type<T>::word();
        std::string value = required ? "" : param_type<T>::text(made.*at);
        return value.empty() ? text : text + " = " + value;
    }
};

// Reads the values of a call, or the plan attributes of a rule.
template <class P, class Source> struct ParamValues {
    const Source &from;
    bool rule;
    P made{};
    template <class T> void field(const char *name, T P::*at) { made.*at = param_type<T>::read(from.param(name)); }
    template <class T> void required(const char *name, T P::*at) { field(name, at); }
    // A rule does not see it: the struct has its default.
    template <class T> void runtime(const char *name, T P::*at)
    {
        if (!rule)
            field(name, at);
    }
};

} // namespace detail

// The attributes of a struct as a declaration writes them: "times: int = 1, alpha: runtime float = 0.01".
template <class P> std::string param_text()
{
    detail::ParamText<P> text;
    P::fields(text);
    std::string all = text.plan + text.call;
    return all.empty() ? all : all.substr(2);
}

// Their names, for the gradient: "alpha, times".
template <class P> std::string param_names()
{
    detail::ParamText<P> text;
    P::fields(text);
    return text.names;
}

// A declaration without attributes, with those of the struct.
template <class P> std::string with_params(const std::string &declaration)
{
    size_t arrow = declaration.find("->"), close = declaration.rfind(')', arrow);
    if (arrow == std::string::npos || close == std::string::npos)
        throw Error("'" + declaration + "' is not a declaration: write it as in 'f(x: float) -> y'");
    if (declaration.find(';') < arrow)
        throw Error("'" + declaration + "' has attributes beside those of its struct: put them into the struct");
    std::string text = param_text<P>();
    return text.empty() ? declaration : declaration.substr(0, close) + "; " + text + declaration.substr(close);
}

class Call;

// The values of a call (or of a rule, which sees no runtime attributes: these have their defaults) as a struct.
template <class P, class Source> P read_params(const Source &from)
{
    detail::ParamValues<P, Source> values{from, !std::is_same_v<Source, Call>};
    P::fields(values);
    return values.made;
}

} // namespace oflow

#endif
