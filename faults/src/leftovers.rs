//! Leftovers that a job must not have: processes, shared memory, temporary files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The variable that marks every process of one run, whoever its parent is by now.
pub const MARK: &str = "OFLOW_FAULTS_RUN";

/// The living processes of a run: (process id, command).
pub fn processes(run: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARK}={run}");
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        // Of a zombie, and of a process that ends just now, nothing can be read.
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let ours = environment.split(|b| *b == 0).any(|v| v == wanted.as_bytes());
        let command = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string();
        ours.then(|| (pid, command()))
    })
    .collect()
}

/// Names in `/dev/shm` that are oflow's.
pub fn segments() -> BTreeSet<String> {
    let all = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    all.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n.contains("oflow")).collect()
}

/// Files in a folder, however deep; paths relative to it.
pub fn files(folder: &Path) -> Vec<String> {
    let (mut found, mut open) = (vec![], vec![folder.to_path_buf()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            match entry.file_type() {
                Ok(t) if t.is_dir() => {
                    found.push(format!("{name}/"));
                    open.push(path);
                }
                _ => found.push(name),
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_by_its_mark_until_it_is_gone() {
        let run = format!("leftovers-test-{}", std::process::id());
        assert!(processes(&run).is_empty());
        let mut cat = Command::new("cat").env(MARK, &run).stdin(Stdio::piped()).spawn().unwrap();
        while processes(&run).iter().all(|(_, command)| command != "cat") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(processes(&run)[0].0, cat.id() as i32);
        drop(cat.stdin.take());
        cat.wait().unwrap();
        assert!(processes(&run).is_empty());
    }
}
