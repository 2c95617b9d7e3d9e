//! Tables of a page that a program says. `UPDATE_EXPECT=1` writes them anew.

/// Compares the tables of a page, by name, with what they have to be; returns the page as it is to be.
pub fn compare(path: &str, tables: &[(&str, String)]) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    let mut new = page.clone();
    for (name, text) in tables {
        let (begin, end) = (format!("<!-- table {name} -->\n"), "<!-- end -->");
        let (head, rest) = new.split_once(&begin).unwrap_or_else(|| panic!("the page has no table {name}"));
        let (_, tail) = rest.split_once(end).expect("a table has an end");
        new = format!("{head}{begin}{text}{end}{tail}");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &new).unwrap();
    } else {
        assert!(page == new, "{path} is not what the program says: run with UPDATE_EXPECT=1");
    }
    new
}
