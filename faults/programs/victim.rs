//! The victim of the fault matrix: trains a small net by global ops and, if told to, commits one fault at one step on one
//! rank. The lines that the reports must name carry a mark, `// @name`; the matrix looks their numbers up here.
//!
//! ```text
//! victim --dir FOLDER [--steps N] [--until FILE] [--save FOLDER] [--fault KIND --rank R --step N]
//! ```
//!
//! It ends after that many steps, or once rank 0 sees the file. The fault is committed in the first start of the job only.

use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use oflow::World;
use oflow::checkpoint::{CheckpointManager, CheckpointOptions};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};

/// Elements of what is saved besides the weights, so that saving takes a while and fills small disks.
const BALLAST: usize = 96 << 10;
/// Rows of a rank's batch, and widths of the net.
const ROWS: usize = 8;
const WIDTH: usize = 16;

/// What is to go wrong, where and when.
struct Plan {
    fault: String,
    rank: usize,
    step: usize,
    steps: usize,
    until: Option<String>,
    save: Option<String>,
    /// Whether the job has not been started again.
    first: bool,
    /// Where ranks tell their process ids and the time of the fault.
    folder: String,
}

impl Plan {
    fn read() -> Plan {
        let args: Vec<String> = std::env::args().collect();
        let value = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned();
        let number = |name: &str| value(name).map(|v| v.parse().expect("a number"));
        Plan {
            fault: value("--fault").unwrap_or_default(),
            rank: number("--rank").unwrap_or(usize::MAX),
            step: number("--step").unwrap_or(usize::MAX),
            steps: number("--steps").unwrap_or(usize::MAX),
            until: value("--until"),
            save: value("--save"),
            first: std::env::var("OFLOW_RESTART").map_or(true, |n| n == "0"),
            folder: value("--dir").unwrap_or_default(),
        }
    }

    /// Whether this is the place, rank and step of that fault; then it notes the time.
    fn here(&self, fault: &str, world: &World, step: usize) -> bool {
        let here = self.first && self.fault == fault && self.rank == world.rank() && self.step == step;
        if here {
            self.tell_fault();
        }
        here
    }

    /// Commits a fault of a rank that has not joined the job.
    fn before_init(&self) {
        let own = std::env::var("RANK").is_ok_and(|rank| rank == self.rank.to_string());
        if !self.first || !own || !["exits-before-init", "never-inits"].contains(&self.fault.as_str()) {
            return;
        }
        self.tell_fault();
        if self.fault == "exits-before-init" {
            std::process::exit(0);
        }
        loop {
            std::thread::park();
        }
    }

    /// Notes the time.
    fn tell_fault(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        self.tell("fault", &format!("{now:.6}"));
    }

    /// Writes a file that is there whole or not at all.
    fn tell(&self, name: &str, text: &str) {
        if self.folder.is_empty() {
            return;
        }
        let path = format!("{}/{name}", self.folder);
        // Ranks may tell the same at once.
        let new = format!("{path}.{}.new", std::process::id());
        std::fs::File::create(&new).and_then(|mut f| f.write_all(text.as_bytes())).expect("the folder is there");
        std::fs::rename(new, path).expect("the folder is there");
    }
}

/// What is saved.
struct State<'a>(&'a [(&'a str, &'a Tensor)]);

impl Stateful for State<'_> {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.0.iter().for_each(|(name, tensor)| to.tensor(name, tensor));
        Ok(())
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.0.iter().for_each(|(name, tensor)| from.fill(name, tensor));
        Ok(())
    }
}

fn main() -> Result<()> {
    let plan = Plan::read();
    plan.before_init();
    let world = oflow::init()?;
    let all = Placement::all(Device::Cpu)?;
    manual_seed(1);
    let rows = ROWS * world.size();
    let w1 = randn([WIDTH, WIDTH], (&all, sbp![B]).dtype(DType::F64))?;
    let w2 = randn([WIDTH, 1], (&all, sbp![B]).dtype(DType::F64))?;
    let (w1, w2) = (w1.mul(0.1)?.requires_grad_(true)?, w2.mul(0.1)?.requires_grad_(true)?);
    let ballast = full([BALLAST], 1.0, (&all, sbp![S(0)]).dtype(DType::F64))?;
    let mut manager = plan.save.as_ref().map(|dir| CheckpointManager::new(dir, CheckpointOptions::default()));
    for step in 0..plan.steps {
        if let Some(manager) = &mut manager {
            let state = State(&[("w1", &w1), ("w2", &w2), ("ballast", &ballast)]);
            // Not the fault, but the moment at which it shows.
            manager.save_async(step as u64, &[("net", &state)]).inspect_err(|_| plan.tell_fault())?; // @save
        }
        if plan.here("exits-early", &world, step) {
            return Ok(());
        }
        if plan.here("exits-with-0", &world, step) {
            std::process::exit(0);
        }
        if plan.here("exits-with-7", &world, step) {
            std::process::exit(7);
        }
        if plan.here("error", &world, step) {
            std::fs::read("there is no such file")?;
        }
        if plan.here("loops", &world, step) {
            loop {
                std::hint::spin_loop();
            }
        }
        // No fault: at 100 kbit/s the job goes on, and a warning is right.
        if plan.fault == "slow-link" {
            if plan.rank == world.rank() && plan.step == step {
                hold_links_back(Some(12_500));
            }
            full([8192], 1.0, (&all, sbp![S(0)]).dtype(DType::F64))?.to_global((&all, sbp![B]))?;
        }
        if plan.here("cuts-links", &world, step) {
            links().into_iter().for_each(|fd| {
                let _closed = open(fd).shutdown(std::net::Shutdown::Both);
            });
        }
        if plan.here("silent-link", &world, step) {
            hold_links_back(None);
        }
        if plan.here("runs-out-of-memory", &world, step) {
            runs_out_of_memory();
        }
        let extent = if plan.here("other-shape", &world, step) { rows + world.size() } else { rows };
        let x = full([extent, WIDTH], 0.5, (&all, sbp![S(0)]).dtype(DType::F64))?; // @batch
        let h = x.matmul(&w1)?;
        let h = if plan.here("skips-an-op", &world, step) {
            h
        } else {
            h.relu()? // @skipped
        };
        let h = h.mul(2.0)?; // @after
        let h = if plan.here("calls-another-op", &world, step) {
            h.tanh()? // @other
        } else {
            h.sigmoid()? // @usual
        };
        if plan.fault == "diverges-quietly" && step == plan.step {
            quiet(&plan, &world, &h)?;
        }
        if plan.here("panics", &world, step) {
            panic!("the data is missing"); // @panic
        }
        let loss = h.matmul(&w2)?.square()?.mean(())?;
        loss.backward()?;
        if plan.here("reads-alone", &world, step) {
            loss.item()?; // @alone
        }
        for w in [&w1, &w2] {
            let grad = w.grad().expect("a gradient");
            let _quiet = no_grad();
            w.sub_(&grad.mul(0.01)?)?; // @update
            w.set_grad(None)?;
        }
        let loss = loss.item()?; // @loss
        // What is no fault: nothing may be said of it but, after a while, that others wait.
        if plan.fault == "slow-rank" && plan.rank == world.rank() {
            busy(Duration::from_millis(50));
        }
        if plan.here("computes-long", &world, step) {
            busy(Duration::from_secs(7));
        }
        if plan.here("sleeps-long", &world, step) {
            std::thread::sleep(Duration::from_secs(7));
        }
        if plan.fault == "boxes" {
            boxes(&all, rows, step)?;
        }
        if step == 0 {
            plan.tell(&format!("pid{}", world.rank()), &std::process::id().to_string());
        }
        let seen = plan.until.as_ref().map(|f| world.rank() == 0 && std::path::Path::new(f).exists());
        let over = match seen {
            Some(seen) => any(&all, seen)?,
            None => step + 1 == plan.steps,
        };
        if over {
            if world.rank() == 0 {
                println!("{loss}");
            }
            break;
        }
    }
    if let Some(manager) = manager {
        manager.finish()?;
    }
    world.barrier()?;
    if plan.fault == "slow-link" && plan.rank == world.rank() {
        // What is still on its way passes through this process.
        std::thread::sleep(Duration::from_secs(2));
    }
    // No faults either: nobody needs these ranks any more.
    if plan.fault == "exits-when-done" {
        std::thread::sleep(Duration::from_millis(500) * world.rank() as u32);
        std::process::exit(0);
    }
    if plan.fault == "leaves-others" {
        if plan.rank == world.rank() {
            std::process::exit(0);
        }
        busy(Duration::from_secs(7));
    }
    Ok(())
}

/// Whether it is so on any rank: all get the same answer.
fn any(all: &Placement, here: bool) -> Result<bool> {
    let mine = from_vec(vec![f64::from(u8::from(here))], [1], Device::Cpu)?;
    Ok(mine.to_global((all, sbp![P]))?.sum(())?.item()? > 0.0)
}

/// From here on nothing is communicated for a long time: what only heartbeats can see.
fn quiet(plan: &Plan, world: &World, h: &Tensor) -> Result<()> {
    let began = Instant::now();
    let mut h = h.detach();
    let mut first = true;
    while began.elapsed() < Duration::from_secs(30) {
        let fault = first && plan.here("diverges-quietly", world, plan.step);
        first = false;
        h = if fault {
            h.tanh()? // @quiet-other
        } else {
            h.sigmoid()? // @quiet-usual
        };
        // The records of the last thousand ops are to reach back to the fault when the heartbeats have told of it, on a busy
        // machine too; without them only the interval is known.
        busy(Duration::from_millis(3));
    }
    Ok(())
}

/// There and back between layouts, with values that tell.
fn boxes(all: &Placement, rows: usize, step: usize) -> Result<()> {
    let n = (rows * 64) as i64;
    let x = arange(n, (all, sbp![S(0)]))?.add(step as i64)?.reshape([rows as i64, 64])?;
    let there = x.to_global((all, sbp![S(1)]))?;
    let back = there.to_global((all, sbp![B]))?.to_global((all, sbp![S(0)]))?;
    assert_eq!(back.ne(&x)?.cast(DType::F64)?.sum(())?.item()?, 0.0);
    Ok(())
}

fn busy(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Puts somebody between this rank and those of other hosts who takes what it sends and passes on so many bytes a second, or
/// nothing. To both kernels the connections are well: what they send is acknowledged.
fn hold_links_back(rate: Option<usize>) {
    for fd in links() {
        let stream = open(fd);
        let mut far = stream.try_clone().expect("a descriptor");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        let (mut held, _) = listener.accept().expect("a connection");
        near.set_nonblocking(true).and_then(|()| near.set_nodelay(true)).expect("a socket");
        let mut back = held.try_clone().expect("a descriptor");
        // SAFETY: both are open. From here on the owner of the descriptor has the other connection.
        assert_eq!(unsafe { dup2(near.as_raw_fd(), fd) }, fd);
        let mut on = far.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            let mut bytes = vec![0; rate.map_or(64 << 10, |r| r / 20)];
            while let Ok(n @ 1..) = held.read(&mut bytes) {
                if rate.is_some() {
                    std::thread::sleep(Duration::from_millis(50));
                    // So few bytes find room at once, or the other end has gone.
                    let _gone = on.write_all(&bytes[..n]);
                }
            }
        });
        std::thread::spawn(move || {
            // The other way all is well. The connection does not block, which is its owner's doing.
            let mut bytes = vec![0; 64 << 10];
            loop {
                match far.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(n) => back.write_all(&bytes[..n]).expect("this rank lives"),
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
    }
}

fn open(fd: i32) -> ManuallyDrop<TcpStream> {
    // SAFETY: looked at or shut down only; whoever owns the descriptor keeps it.
    ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(fd) })
}

/// The descriptors of this rank's connections to ranks of other hosts.
fn links() -> Vec<i32> {
    let control = std::env::var("OFLOW_CONTROL").expect("oflaunch says where");
    let is_link = |fd: &i32| open(*fd).peer_addr().is_ok_and(|peer| peer.to_string() != control);
    let all = std::fs::read_dir("/proc/self/fd").expect("the system tells").flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(is_link).collect()
}

unsafe extern "C" {
    fn dup2(from: i32, to: i32) -> i32;
}

/// Takes memory until there is none. It is not written to, so that this is quick.
fn runs_out_of_memory() {
    let mut taken = vec![];
    loop {
        taken.push(std::hint::black_box(Vec::<u8>::with_capacity(64 << 20)));
    }
}
