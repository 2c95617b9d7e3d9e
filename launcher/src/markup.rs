//! Text in pages and pictures.

/// Returns text as it stands in HTML and SVG, where nothing of it is markup; also between double quotes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
