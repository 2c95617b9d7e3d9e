//! Finds the kernels in preprocessed text, where `__global__` is the word OF_EMU_GLOBAL and `__launch_bounds__(n)` is
//! OF_EMU_BOUNDS((n)), takes those words out, and appends the table that modules are loaded by.

const GLOBAL: &str = "OF_EMU_GLOBAL";
const BOUNDS: &str = "OF_EMU_BOUNDS";

/// The text without the marks and with the table.
pub fn with_table(preprocessed: &str) -> String {
    let mut text = String::with_capacity(preprocessed.len() + 4096);
    let mut kernels: Vec<(String, String)> = Vec::new();
    let mut rest = preprocessed;
    while let Some(at) = rest.find(GLOBAL) {
        let before = &rest[..at];
        text.push_str(before);
        rest = &rest[at + GLOBAL.len()..];
        // A template has no one entry; one that is not `extern "C"` has no plain name, but one can still be launched by it.
        let template = before.trim_end().ends_with('>');
        let (kernel, head, after) = head(rest);
        text.push_str(&head);
        rest = after;
        if let Some(kernel) = kernel.filter(|_| !template)
            && !kernels.iter().any(|known| known.0 == kernel.0)
        {
            kernels.push(kernel);
        }
    }
    text.push_str(rest);
    text.push_str("\n# 1 \"table of kernels\"\n");
    text.push_str("extern \"C\" __attribute__((visibility(\"default\"))) const of_emu_kernel of_emu_kernels[] = {\n");
    for (name, bounds) in kernels {
        let entry = format!("of_emu_entry<{name}>");
        text.push_str(&format!(
            "{{\"{name}\", {entry}::call, {entry}::count, {entry}::sizes, {entry}::aligns, {entry}::pointers, \
             of_emu_bounds({bounds})}},\n"
        ));
    }
    text.push_str("{0, 0, 0, 0, 0, 0, 0}};\n");
    text
}

/// From behind the mark up to the parameter list: the kernel's name and bounds, the text without bounds, and what follows.
fn head(text: &str) -> (Option<(String, String)>, String, &str) {
    let (mut kept, mut bounds, mut name) = (String::new(), String::new(), String::new());
    let mut rest = text;
    loop {
        let Some(next) = rest.chars().next() else { return (None, kept, rest) };
        if next.is_alphanumeric() || next == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = &rest[..end];
            rest = &rest[end..];
            if word == BOUNDS || word == "__attribute__" {
                let arguments = rest.find('(').and_then(|open| balanced(&rest[open..]).map(|len| (open, len)));
                let Some((open, len)) = arguments else { return (None, kept, rest) };
                let inner = &rest[open + 1..open + len - 1];
                if word == BOUNDS {
                    bounds = inner.trim().strip_prefix('(').and_then(|x| x.strip_suffix(')')).unwrap_or(inner).into();
                } else {
                    kept.push_str(word);
                    kept.push_str(&rest[..open + len]);
                }
                rest = &rest[open + len..];
            } else {
                name = word.into();
                kept.push_str(word);
            }
        } else if next == '(' {
            return ((!name.is_empty()).then_some((name, bounds)), kept, rest);
        } else if next == ';' || next == '{' {
            return (None, kept, rest);
        } else {
            kept.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
}

/// The length of the text from an opening parenthesis to the one that closes it.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::with_table;

    #[test]
    fn kernels_are_found_with_bounds_wherever_the_words_stand() {
        let text = with_table(
            "extern \"C\" OF_EMU_GLOBAL void OF_EMU_BOUNDS((256)) a(int n) {}\n\
             extern \"C\" OF_EMU_GLOBAL OF_EMU_BOUNDS((N * (2), 1)) void b(float* x) {}\n\
             template <typename T> OF_EMU_GLOBAL void c(T x) {}\n\
             extern \"C\" OF_EMU_GLOBAL void\nd() {}",
        );
        assert!(!text.contains("OF_EMU_GLOBAL") && !text.contains("OF_EMU_BOUNDS"), "{text}");
        assert!(text.contains("{\"a\", of_emu_entry<a>::call"), "{text}");
        assert!(text.contains("of_emu_bounds(256)") && text.contains("of_emu_bounds(N * (2), 1)"), "{text}");
        assert!(!text.contains("{\"c\"") && text.contains("{\"d\"") && text.contains("of_emu_bounds()"), "{text}");
    }
}
