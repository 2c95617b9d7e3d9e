//! Slurm's list formats: tasks per node, and names of nodes.

/// Numbers of tasks by node: `2(x3),1` is 2, 2, 2, 1. `None` if the text is no such list.
pub(super) fn tasks_per_node(text: &str) -> Option<Vec<usize>> {
    /// More nodes than any cluster has: a text must not make us allocate without end.
    const MOST_NODES: usize = 1 << 20;
    let mut tasks = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse::<usize>().ok()?),
            None => (part, 1),
        };
        let count = count.parse::<usize>().ok()?;
        if count == 0 || times == 0 || tasks.len() + times > MOST_NODES {
            return None;
        }
        tasks.extend(std::iter::repeat_n(count, times));
    }
    Some(tasks)
}

/// The first name of a list of nodes: of `rack[2-3]n[07-09,12],login` it is `rack2n07`. `None` if it is no such list.
pub(super) fn first_host(list: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = list;
    loop {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        name.push_str(&rest[..end]);
        match rest[end..].strip_prefix('[') {
            Some(ranges) => {
                let (ranges, behind) = ranges.split_once(']')?;
                let first = ranges.split([',', '-']).next().filter(|f| !f.is_empty())?;
                name.push_str(first);
                rest = behind;
            }
            None => break,
        }
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (!name.is_empty() && name.chars().all(fits)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read() {
        let check =
            |text: &str, expected: &[usize]| assert_eq!(tasks_per_node(text).as_deref(), Some(expected), "{text}");
        check("4", &[4]);
        check("2(x3),1", &[2, 2, 2, 1]);
        check("1,2(x2),1", &[1, 2, 2, 1]);
        for bad in ["", ",", "2(x", "2(x)", "2(y3)", "2(x3", "0", "1(x0)", "-1", "2 ", "1(x99999999999)", "x"] {
            assert_eq!(tasks_per_node(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_first_host_is_read() {
        let check = |list: &str, expected: &str| assert_eq!(first_host(list).as_deref(), Some(expected), "{list}");
        check("localhost", "localhost");
        check("n1,n2", "n1");
        check("gpu[03-07,09],login", "gpu03");
        check("gpu[7]", "gpu7");
        check("rack[2-3]n[07-09,12].site.org", "rack2n07.site.org");
        check("a-b_c.d", "a-b_c.d");
        for bad in ["", ",", "n[", "n[]", "n[-2]", "a b", "$(x)", "[,]"] {
            assert_eq!(first_host(bad), None, "{bad:?}");
        }
    }
}
