//! PyTorch's names of functions that stand here under another name, are composed of others, or are not there. A call of an
//! unknown name is answered from these tables first.

/// `(PyTorch's name, what to write here)`.
const HERE: &[(&str, &str)] = &[
    ("all_reduce", "x.to_global(sbp![B])? of a tensor that is P(sum)"),
    ("as_tensor", "from_vec(values, shape, target)?"),
    ("clone", "x.copy()?"),
    ("detach", "x.detach()"),
    ("double", "x.cast(DType::F64)?"),
    ("float", "x.cast(DType::F32)?"),
    ("fold", "x.col2im(output_size, kernel_size, dilation, padding, stride)?"),
    ("from_numpy", "from_vec(values, shape, target)?"),
    ("half", "x.cast(DType::F16)?"),
    ("int", "x.cast(DType::I32)?"),
    ("logsigmoid", "x.log_sigmoid()?"),
    ("long", "x.cast(DType::I64)?"),
    ("range", "range(start, end, step, target)?"),
    ("softmin", "x.neg()?.softmax(dim)?"),
    ("swish", "x.silu()?"),
    ("tensor", "from_vec(values, shape, target)?"),
    ("to", "x.cast(dtype)?, x.to_device(device)? or x.to_global(layout)?"),
    ("type", "x.cast(dtype)?"),
];

/// Functions of PyTorch that no function here composes.
const ABSENT: &[&str] = &["as_strided", "poisson", "rnn"];

/// Functions of PyTorch that the crate `oflow-linalg` has. Called by name after its `register()`, they are functions of ours.
const LINALG: &[&str] = &[
    "cholesky",
    "cholesky_ex",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "geqrf",
    "householder_product",
    "inv",
    "inv_ex",
    "inverse",
    "ldl_factor_ex",
    "ldl_solve",
    "logdet",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_sqrth",
    "multi_dot",
    "orgqr",
    "pinv",
    "pinverse",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "triangular_solve",
];

/// Functions of PyTorch that the crate `oflow-fft` has, in the same way.
const FFT: &[&str] = &[
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "istft",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "stft",
];

/// Advice for a function of PyTorch that has another name in oflow; `None` where there is no advice.
pub(super) fn instead(name: &str) -> Option<String> {
    let name = name.rsplit(['.', ':']).next().unwrap_or(name);
    if let Ok(i) = HERE.binary_search_by_key(&name, |(n, _)| n) {
        return Some(format!("PyTorch's `{name}` is written here as `{}`", HERE[i].1));
    }
    for (names, domain) in [(LINALG, "linalg"), (FFT, "fft")] {
        if names.binary_search(&name).is_ok() {
            let name = match name {
                "inverse" => "inv",
                "pinverse" => "pinv",
                "lu" | "lu_factor" => "lu_factor_ex",
                "geqrf" => "qr",
                "orgqr" => "householder_product",
                "triangular_solve" => "solve_triangular",
                name => name,
            };
            return Some(format!(
                "`{name}` is in the crate oflow-{domain}: call `oflow_{domain}::{name}`, or `oflow_{domain}::register()?` and then \
                 '{domain}.{name}'; in Python `oflow.{domain}.{name}`"
            ));
        }
    }
    ABSENT.binary_search(&name).is_ok().then(|| {
        format!(
            "PyTorch's `{name}` is not in oflow, and no function here composes it; declare an op with `oflow::ops::register`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::functions;

    #[test]
    fn names_are_sorted_and_are_no_functions_of_ours() {
        assert!(HERE.is_sorted_by(|a, b| a.0 < b.0) && ABSENT.is_sorted_by(|a, b| a < b));
        assert!(LINALG.is_sorted_by(|a, b| a < b) && FFT.is_sorted_by(|a, b| a < b));
        let ours: Vec<String> = functions().into_iter().map(|f| f.sig.name).collect();
        for name in HERE.iter().map(|(n, _)| *n).chain(ABSENT.iter().chain(LINALG).chain(FFT).copied()) {
            assert!(!ours.iter().any(|o| o == name), "'{name}' is a function of ours");
        }
    }

    #[test]
    fn compositions_call_functions_that_exist() {
        let written = [
            include_str!("autograd.rs"),
            include_str!("create.rs"),
            include_str!("layout.rs"),
            include_str!("../tensor/handle.rs"),
        ];
        let generated: Vec<String> = functions().into_iter().filter_map(|f| Some(f.rust?.name)).collect();
        for (name, code) in HERE {
            let mut calls = 0;
            for (i, _) in code.match_indices('(') {
                let from = code[..i].rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |p| p + 1);
                let f = &code[from..i];
                if f.is_empty() || f == "P" || f == "ln" {
                    continue;
                }
                calls += 1;
                let plain = f.strip_suffix("_keepdim").unwrap_or(f);
                let forms = [format!("pub fn {f}("), format!("pub fn {f}<")];
                let there =
                    generated.iter().any(|g| g == plain) || written.iter().any(|s| forms.iter().any(|f| s.contains(f)));
                assert!(there, "{name}: there is no '{f}' in {code}");
            }
            assert!(calls > 0 || code.contains("where_"), "{name}");
        }
    }
}
