//! Numbers and texts as people read them in tables and summaries.

/// Bytes in a unit that fits: `812 B`, `12.3 kB`, `4.7 MB`, `1.25 GB`. Units are decimal.
///
/// ```
/// assert_eq!(oflow_base::text::bytes(4_700_000), "4.7 MB");
/// ```
pub fn bytes(n: u64) -> String {
    match n as f64 {
        x if x < 1e4 => format!("{n} B"),
        x if x < 1e6 => format!("{:.1} kB", x / 1e3),
        x if x < 1e9 => format!("{:.1} MB", x / 1e6),
        x => format!("{:.2} GB", x / 1e9),
    }
}

/// A share in percent, with one decimal below ten: `0 %`, `4.3 %`, `87 %`.
pub fn percent(part: u64, whole: u64) -> String {
    match part as f64 * 100.0 / whole.max(1) as f64 {
        0.0 => "0 %".to_string(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// The end of a text that is longer than `width` characters, after an ellipsis; the whole of another one. The end of a path tells more than
/// its beginning.
///
/// ```
/// assert_eq!(oflow_base::text::tail("model.blocks.3.mlp", 12), "…locks.3.mlp");
/// ```
pub fn tail(text: &str, width: usize) -> String {
    match text.chars().count() {
        n if n <= width => text.to_string(),
        n => std::iter::once('…').chain(text.chars().skip(n + 1 - width)).collect(),
    }
}

/// The beginning of a text that is longer than `width` characters, with an ellipsis; the whole of another one.
///
/// ```
/// assert_eq!(oflow_base::text::head("validation loss", 7), "valida…");
/// ```
pub fn head(text: &str, width: usize) -> String {
    match text.chars().count() {
        n if n <= width => text.to_string(),
        _ => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The last two parts of a path: `src/train.rs` of `/home/ada/gpt/src/train.rs`.
pub fn short_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

/// Text as it stands in HTML and SVG, where nothing of it is markup; also between double quotes.
///
/// ```
/// assert_eq!(oflow_base::text::escape("<b> & \"c\""), "&lt;b&gt; &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        let all = [0, 9_999, 10_000, 999_960, 1_000_000, 1 << 40].map(bytes);
        assert_eq!(all, ["0 B", "9999 B", "10.0 kB", "1000.0 kB", "1.0 MB", "1099.51 GB"]);
        assert_eq!((percent(0, 0), percent(1, 30), percent(29, 30)), ("0 %".into(), "3.3 %".into(), "97 %".into()));
        assert_eq!((tail("abc", 3), tail("abcd", 3), tail("äöüß", 3)), ("abc".into(), "…cd".into(), "…üß".into()));
        assert_eq!(
            (short_path("/a/b/c.rs"), short_path("c.rs"), short_path("")),
            ("b/c.rs".into(), "c.rs".into(), "".into())
        );
    }
}
