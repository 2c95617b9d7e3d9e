//! PyTorch's keywords for parameters that have other names here.
//!
//! `cargo xtask codegen` compiles this file too, and writes the stubs with it: it uses the library only.

use oflow::functional::FnSig;

/// A keyword of PyTorch, and the parameters that it may mean: the first of them that a function has, unless it has one of the keyword's own name.
const SAME: &[(&str, &[&str])] = &[
    ("A", &["a", "x"]),
    ("N", &["columns", "m"]),
    ("axis", &["dim", "dims"]),
    ("batch1", &["a"]),
    ("batch2", &["b"]),
    ("boundaries", &["sorted"]),
    ("chunks", &["parts"]),
    ("condition", &["cond"]),
    ("dim", &["dims"]),
    ("dims", &["dim"]),
    ("dimension", &["dim"]),
    ("end", &["hi"]),
    ("end_dim", &["end"]),
    ("exponent", &["b", "s"]),
    ("fill_value", &["value"]),
    ("from", &["lo"]),
    ("high", &["hi"]),
    ("imag", &["im"]),
    ("index", &["ids"]),
    ("indices", &["ids", "index"]),
    ("indices_or_sections", &["sections", "indices"]),
    ("input", &["x", "a", "A", "xs", "logits", "ids", "probs", "cond", "s"]),
    ("input1", &["x1"]),
    ("input2", &["x2"]),
    ("length", &["len"]),
    ("low", &["lo"]),
    ("mat", &["a"]),
    ("mat1", &["a"]),
    ("mat2", &["b"]),
    ("max", &["hi"]),
    ("max_val", &["hi"]),
    ("min", &["lo"]),
    ("min_val", &["lo"]),
    ("negative_slope", &["alpha"]),
    ("num_classes", &["classes"]),
    ("operands", &["xs"]),
    ("other", &["b", "B", "s", "y", "x"]),
    ("real", &["re"]),
    ("repeats", &["dims"]),
    ("row", &["rows"]),
    ("col", &["columns"]),
    ("sections", &["indices"]),
    ("self", &["x", "a"]),
    ("size", &["shape"]),
    ("sorted_sequence", &["sorted"]),
    ("source", &["src"]),
    ("split_size", &["size", "sizes"]),
    ("split_size_or_sections", &["size", "sizes"]),
    ("src", &["other"]),
    ("start_dim", &["start"]),
    ("tensor1", &["a"]),
    ("tensor2", &["b"]),
    ("tensors", &["xs"]),
    ("test_elements", &["values"]),
    ("to", &["hi"]),
    ("value", &["s", "src"]),
    ("values", &["src"]),
    ("vec", &["v", "b"]),
    ("vec1", &["a"]),
    ("vec2", &["b"]),
    ("window_length", &["n"]),
];

/// Position of the parameter that PyTorch's keyword means.
pub fn parameter(sig: &FnSig, keyword: &str) -> Option<usize> {
    let (_, names) = SAME.iter().find(|(word, _)| *word == keyword)?;
    names.iter().find_map(|name| sig.params.iter().position(|p| p.name == *name))
}

/// Whether a function takes its tensors one by one too, as PyTorch's does: `meshgrid(x, y)`.
pub fn is_variadic(function: &str) -> bool {
    const NAMES: [&str; 8] = [
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "block_diag",
        "broadcast_tensors",
        "cartesian_prod",
        "einsum",
        "meshgrid",
    ];
    NAMES.contains(&function)
}
