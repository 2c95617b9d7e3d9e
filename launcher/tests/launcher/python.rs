//! Python programs under oflaunch: how the interpreter is found and started, and how the end of a program is told. The scripts
//! need no module of ours. Without a `python3` the tests say so and test nothing.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::hosts::Hosts;
use crate::common::*;
use rustix::process::Signal;

/// The interpreter itself: the one in PATH may be a script that takes long to find it.
pub fn python() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
        output.status.success().then(|| stdout(&output).trim().into())
    });
    if found.is_none() {
        eprintln!("there is no python3 here: not tested");
    }
    found.as_ref()
}

/// oflaunch with that interpreter, without what the environment of the tests tells one.
fn launch(folder: &Folder, python: &PathBuf, args: &[&str]) -> Command {
    let mut command = oflaunch(folder);
    command.env("OFLOW_PYTHON", python).args(args);
    ["PYTHONUNBUFFERED", "PYTHONFAULTHANDLER", "PYTHONPATH", "VIRTUAL_ENV"].iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort();
    lines
}

/// oflaunch's own lines.
fn report(text: &str) -> Vec<&str> {
    text.lines().filter_map(|l| l.strip_prefix("oflaunch: ")).collect()
}

#[test]
fn a_script_runs_as_one_process_a_rank() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    // With a byte order mark, as some editors write it.
    let text = "\u{feff}import os, sys\nsid = os.stat('/proc/self/fd/' + os.environ['OFLOW_SHM_FD']).st_size > 0\n\
                token = len(os.pread(int(os.environ['OFLOW_TOKEN_FD']), 99, 0))\n\
                print(os.environ['RANK'], os.environ['WORLD_SIZE'], os.getpid() == os.getpgid(0), sid, token, sys.argv)\n";
    folder.write("my job.py", text);
    symlink(folder.path().join("my job.py"), folder.path().join("link.py")).unwrap();
    folder.write("-dash.py", text);
    let absolute = folder.path().join("my job.py").display().to_string();
    for (given, told) in
        [("my job.py", "my job.py"), ("link.py", "link.py"), (&absolute, &absolute), ("./-dash.py", "./-dash.py")]
    {
        let output = launch(&folder, python, &["-n", "2", given, "--", "--a b", "-n"]).output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let wanted = |rank| format!("[rank {rank}] {rank} 2 True True 64 ['{told}', '--a b', '-n']");
        assert_eq!(sorted(&stdout(&output)), [wanted(0), wanted(1)]);
    }
}

#[test]
fn a_module_runs_as_python_would_run_it() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("pack")).unwrap();
    folder.write("pack/__init__.py", "");
    folder.write("pack/job.py", "import sys\nprint(__name__, __package__, sys.argv[1:])\n");
    folder.write("pack/__main__.py", "print('main of', __package__)\n");
    let lines = |args: &[&str]| {
        let output = launch(&folder, python, args).output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(lines(&["-n", "1", "-m", "pack.job", "--", "-x"]), "__main__ pack ['-x']\n");
    assert_eq!(lines(&["-n", "1", "--module", "pack"]), "main of pack\n");
    let output = launch(&folder, python, &["-n", "1", "-m", "pack/job.py"]).output().unwrap();
    assert_eq!(code(&output), 127);
    assert!(stderr(&output).contains("`pack/job.py` is not the name of a Python module"), "{}", stderr(&output));
    let output = launch(&folder, python, &["-n", "1", "-m", "nothing_there"]).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("No module named nothing_there"), "{}", stderr(&output));
}

#[test]
fn without_an_interpreter_or_a_script_nothing_starts() {
    let folder = Folder::new();
    folder.write("job.py", "");
    let refused = |path: &str, named: &str, program: &str| {
        let mut command = oflaunch(&folder);
        command.env("PATH", path).env("OFLOW_PYTHON", named).env_remove("VIRTUAL_ENV").args(["-n", "2", program]);
        let output = command.output().unwrap();
        (code(&output), stderr(&output))
    };
    let here = folder.path().to_str().unwrap();
    let (code, text) = refused(here, "", "job.py");
    assert!(code == 127 && text.contains("PATH has neither python3 nor python"), "{text}");
    let (code, text) = refused(here, "python9", "job.py");
    assert!(code == 127 && text.contains("OFLOW_PYTHON is python9"), "{text}");
    folder.sh("python3", "echo started");
    assert_eq!(refused(here, "", "job.py").0, 0);
    let (code, text) = refused(here, "", "none.py");
    assert!(code == 127 && text.contains("cannot find none.py: No such file"), "{text}");
    std::fs::create_dir(folder.path().join("folder.py")).unwrap();
    assert_eq!(refused(here, "", "folder.py").0, 126);
}

#[test]
fn a_dry_run_shows_the_interpreter() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    folder.write("my job.py", "raise SystemExit(9)");
    let output = launch(&folder, python, &["-n", "1", "--dry-run", "my job.py", "--", "x"]).output().unwrap();
    let run = format!("run:   {} 'my job.py' x\n", python.display());
    assert!(code(&output) == 0 && stdout(&output).starts_with(&run), "{}", stdout(&output));
    let output = launch(&folder, python, &["-n", "1", "--dry-run", "-m", "a.b"]).output().unwrap();
    assert!(stdout(&output).starts_with(&format!("run:   {} -m a.b\n", python.display())), "{}", stdout(&output));
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    for (body, wanted, told) in [
        ("sys.exit(0)", 0, None),
        ("sys.exit()", 0, None),
        ("sys.exit(7)", 7, Some("exited with code 7")),
        ("sys.exit('no data')", 1, Some("exited with code 1")),
        ("os._exit(3)", 3, Some("exited with code 3")),
        ("raise KeyError('x')", 1, Some("failed with the error above (at job.py:3)")),
        ("[0][1]", 1, Some("failed with the error above (at job.py:3)")),
        ("os.kill(os.getpid(), 9)", 137, Some("was killed by signal 9 (SIGKILL)")),
        ("raise MemoryError", 1, Some("failed: MemoryError (at job.py:3)")),
        ("import nothing_there", 1, Some("failed with the error above (at job.py:3)")),
        // A traceback that was printed and got over.
        (
            "import traceback\n    try: 1/0\n    except: traceback.print_exc()\n    sys.exit(5)",
            5,
            Some("exited with code 5"),
        ),
        // What happens at the end is not the reason.
        (
            "import atexit\n    atexit.register(lambda: 1/0)\n    raise KeyError('x')",
            1,
            Some("failed with the error above (at job.py:5)"),
        ),
    ] {
        folder.write("job.py", &format!("import os, sys\nif os.environ['RANK'] == '1':\n    {body}\n"));
        let output = launch(&folder, python, &["-n", "2", "job.py"]).output().unwrap();
        let text = stderr(&output);
        assert_eq!(code(&output), wanted, "{body}: {text}");
        match (told, report(&text).first()) {
            (None, None) => {}
            (Some(told), Some(line)) => {
                let told = told.replace("job.py", &folder.path().join("job.py").display().to_string());
                assert!(line.starts_with("rank 1 (pid ") && line.contains(&told), "{body}: {text}");
            }
            _ => panic!("{body}: {text}"),
        }
    }
}

#[test]
fn the_same_traceback_is_printed_once() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    folder.write("job.py", "def load(name):\n    raise ValueError(f'no {name}')\n\nload('data')\n");
    let output = launch(&folder, python, &["-n", "3", "job.py"]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert_eq!(text.matches("Traceback").count(), 1, "{text}");
    assert_eq!(text.matches("line 4, in <module>").count(), 1, "{text}");
    let same = text.lines().find(|l| l.contains("] the same error as rank ")).unwrap();
    assert!(same.starts_with("[ranks ") && text.matches("ValueError: no data").count() == 1, "{text}");
    let at = folder.path().join("job.py");
    assert!(report(&text)[0].ends_with(&format!(" failed with the error above (at {}:2)", at.display())), "{text}");
    // A program that cannot even be parsed.
    folder.write("wrong.py", "x = 1\ndef f(:\n    pass\n");
    let output = launch(&folder, python, &["-n", "2", "wrong.py"]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(
        text.contains("SyntaxError: ")
            && text.contains("failed with the error above (at ")
            && text.contains("wrong.py:2)"),
        "{text}"
    );
    assert_eq!(text.matches("def f(:").count(), 1, "{text}");
}

#[test]
fn a_crash_in_native_code_names_the_python_line() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    folder.write("job.py", "import ctypes\n\ndef f():\n    ctypes.string_at(8)\n\nf()\n");
    let output = launch(&folder, python, &["-n", "1", "job.py"]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(code(&output), 139, "{text}");
    let report = report(&text)[0];
    let at = folder.path().join("job.py");
    let wanted = format!("was killed by signal 11 (SIGSEGV) (at {}:4)", at.display());
    assert!(report.ends_with(&wanted), "{text}");
}

#[test]
fn output_arrives_while_the_program_runs() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let mut command = launch(&folder, python, &["-n", "2", "job.py"]);
    folder
        .write("job.py", "import os\nif os.environ['RANK'] == '0':\n    print('begun')\n    print('told', input())\n");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut begun = [0; "[rank 0] begun\n".len()];
    // Rank 0 waits for input: this line was not kept back.
    out.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"[rank 0] begun\n");
    stdin.write_all(b"on\n").unwrap();
    drop(stdin);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "[rank 0] told on\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_signal_ends_all_ranks_and_what_they_have_started() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    folder.write(
        "job.py",
        "import os, signal, subprocess\nrank = os.environ['RANK']\nchild = subprocess.Popen(['sleep', '1000'])\n\
         with open(f'child{rank}.new', 'w') as f: f.write(str(child.pid))\nos.rename(f'child{rank}.new', f'child{rank}')\n\
         with open(f'pid{rank}.new', 'w') as f: f.write(str(os.getpid()))\nos.rename(f'pid{rank}.new', f'pid{rank}')\n\
         signal.pause()\n",
    );
    for (signal, wanted) in [(Signal::INT, 130), (Signal::KILL, 137)] {
        for rank in 0..2 {
            let _absent = std::fs::remove_file(folder.path().join(format!("pid{rank}")));
        }
        let running = Running::of(&mut launch(&folder, python, &["-n", "2", "job.py"]));
        let pids = folder.pids(2);
        let child = |rank: usize| {
            let text = std::fs::read_to_string(folder.path().join(format!("child{rank}"))).unwrap();
            text.parse().unwrap()
        };
        let children: [i32; 2] = [child(0), child(1)];
        match signal {
            Signal::INT => running.signal(signal),
            _ => kill(pids[1], signal),
        }
        let (status, text) = running.finish();
        assert_eq!(status.code(), Some(wanted), "{text}");
        assert_gone(&pids);
        for child in children {
            wait_for("the child to end", LONG, || (!alive(child)).then_some(()));
        }
        if signal == Signal::INT {
            assert!(text.matches("Traceback").count() <= 2 && text.contains("KeyboardInterrupt"), "{text}");
        }
    }
}

/// Whether a process runs: a zombie does not.
fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn hosts_compare_the_text_of_the_script() {
    let Some(python) = python() else { return };
    let host = |other: &Hosts, text: &str, node: &str| {
        other.folder.write("job.py", text);
        let mut command = other.command(1, "job.py");
        command.env("OFLOW_PYTHON", python).args(["--node-rank", node]);
        command
    };
    for (texts, differ) in [(["print('same')\n"; 2], false), (["print('a')\n", "print('b')\n"], true)] {
        let first = Hosts::new("2").with(&["--join-timeout", "20"]);
        let second = Hosts {
            folder: Folder::new(),
            rdzv: first.rdzv.clone(),
            nodes: "2".into(),
            options: first.options.clone(),
        };
        let node0 = Running::of(&mut host(&first, texts[0], "0"));
        let output = host(&second, texts[1], "1").output().unwrap();
        let text = stderr(&output);
        if differ {
            assert!(code(&output) != 0 && text.contains("they are different builds of the program"), "{text}");
            node0.signal(Signal::TERM);
            node0.finish();
        } else {
            assert_eq!((code(&output), stdout(&output).as_str()), (0, "[rank 1] same\n"), "{text}");
            assert_eq!(node0.finish().0.code(), Some(0));
        }
    }
}

#[test]
fn the_descriptors_of_a_job_reach_no_other_program() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    // What a script starts gets neither the token nor the arena: Python closes what it does not hand on.
    folder.write(
        "job.py",
        "import os, subprocess, sys\nfd = os.environ['OFLOW_TOKEN_FD']\n\
         print('OFLOW_TOKEN' in os.environ, subprocess.run([sys.executable, '-c', f'import os; os.fstat({fd})'], \
         stderr=subprocess.DEVNULL).returncode)\n",
    );
    let output = launch(&folder, python, &["-n", "1", "job.py"]).output().unwrap();
    assert_eq!(stdout(&output), "False 1\n", "{}", stderr(&output));
}
