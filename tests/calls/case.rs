//! One case: some tensors, then calls by name and by method on them and on what they give.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use oflow::ErrorKind;
use oflow::functional::{Arg, FnBody, FnDef, ParamKind, call, functions};
use oflow::interpreter::Target;
use oflow::ops::resolve_attrs;
use oflow::ops::{AttrValue, InferCtx, Op, find};
use oflow::prelude::*;
use oflow::testing::{Random, Sample, derive_all, mix};

use crate::made::{self, any_tensor, like, size, sizes, tell};

/// In the place of an op's name: any.
const ANY_OP: &str = "any op";

/// The variable that says which cases a process is to run.
pub const CHILD: &str = "OFLOW_CALLS_CHILD";
/// The address space of a process.
const MEMORY: u64 = 4 << 30;
/// Calls on tensors with more elements than this are made where they must be refused only: the others would take long
/// honestly.
const MOST_ELEMENTS: usize = 1 << 22;

/// Which cases to run.
pub struct Job {
    pub seed: u64,
    pub case: u64,
    pub calls: u64,
    /// That case and no other, told as it runs.
    pub alone: bool,
}

impl Job {
    pub fn text(&self, now: &Path) -> String {
        format!("{}:{}:{}:{}:{}", self.seed, self.case, self.calls, self.alone, now.display())
    }
    pub fn parse(text: &str) -> (Job, PathBuf) {
        let f: Vec<&str> = text.splitn(5, ':').collect();
        let n = |i: usize| f[i].parse().unwrap();
        (Job { seed: n(0), case: n(1), calls: n(2), alone: f[3] == "true" }, f[4].into())
    }
}

/// Where the panic that was caught last began.
static PANIC: Mutex<String> = Mutex::new(String::new());

struct Run {
    calls: u64,
    values: u64,
    errors: u64,
    memory: u64,
    skipped: u64,
    now: File,
    alone: bool,
    case: u64,
    ops: Vec<(&'static Op, Vec<Sample>)>,
    functions: Vec<FnDef>,
}

/// Runs a job under the limit of memory, and prints what it finds and counts.
pub fn run_child((job, now): &(Job, PathBuf)) {
    let limit = rustix::process::Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).unwrap();
    run(job, now);
    println!("done");
    std::io::stdout().flush().unwrap();
}

/// Runs a job without a limit, on sizes that need none; what it found.
pub fn run_here(seed: u64, calls: u64) -> Vec<String> {
    made::NO_LIMIT.store(true, std::sync::atomic::Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    run(&Job { seed, case: 0, calls, alone: false }, &folder.path().join("now"));
    std::mem::take(&mut *FINDINGS.lock().unwrap_or_else(|e| e.into_inner()))
}

static FINDINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn run(job: &Job, now: &Path) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| *PANIC.lock().unwrap_or_else(|e| e.into_inner()) = info.to_string()));
    derive_all().unwrap();
    let ops = oflow::ops::all().into_iter().map(|o| (o, Sample::all(o).unwrap())).collect();
    let run = Run {
        calls: 0,
        values: 0,
        errors: 0,
        memory: 0,
        skipped: 0,
        now: File::options().read(true).write(true).create(true).truncate(true).open(now).unwrap(),
        alone: job.alone,
        case: job.case,
        ops,
        functions: functions(),
    };
    // The closure of `run_ranks` may run on several threads; with one rank it runs on one.
    let run = Mutex::new(run);
    let end = oflow::run_ranks(1, |_| {
        let mut run = run.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            run.one(job.seed);
            if run.alone || run.calls >= job.calls {
                return Ok(());
            }
        }
    });
    let run = run.into_inner().unwrap_or_else(|e| e.into_inner());
    if let Err(e) = end {
        finding(run.case, "run_ranks failed", &e.to_string());
    }
    let counts = [
        ("calls", run.calls),
        ("values", run.values),
        ("errors", run.errors),
        ("of them out of memory", run.memory),
        ("skipped", run.skipped),
    ];
    for (what, n) in counts {
        println!("count\t{what}\t{n}");
    }
    println!("at\t{}", run.case);
    std::panic::set_hook(before);
}

fn finding(case: u64, key: &str, text: &str) {
    FINDINGS.lock().unwrap_or_else(|e| e.into_inner()).push(format!("case {case}: {key}\n{text}"));
    println!("finding\t{case}\t{}\t{}", key.replace(['\t', '\n'], " "), text.replace('\t', " ").replace('\n', "\\n"));
}

/// A call at this line.
macro_rules! here {
    ($call:expr) => {
        ($call, line!())
    };
}

type Called = (Result<Vec<Tensor>>, u32);

fn one(r: Result<Tensor>) -> Result<Vec<Tensor>> {
    r.map(|t| vec![t])
}

impl Run {
    fn one(&mut self, seed: u64) {
        let mut r = Random::new(mix(&[seed, self.case]));
        let device = if r.percent(4) { Device::Async } else { Device::Cpu };
        let caught = catch_unwind(AssertUnwindSafe(|| match device {
            // A value that a kernel refuses there poisons the context, so it has one of its own.
            Device::Async => {
                let this = Mutex::new((&mut *self, &mut r));
                let end = oflow::run_ranks(1, |_| {
                    let mut this = this.lock().unwrap_or_else(|e| e.into_inner());
                    let (run, r) = &mut *this;
                    run.calls_of(r, device);
                    Ok(())
                });
                // What is issued last may be refused after the last call.
                let _ = end;
            }
            _ => drop(self.calls_of(&mut r, device)),
        }));
        if caught.is_err() {
            let text = PANIC.lock().unwrap_or_else(|e| e.into_inner()).clone();
            let place = text.lines().next().unwrap_or_default().trim_end_matches(':').to_string();
            let place = place.split(" at ").last().unwrap_or_default().to_string();
            finding(self.case, &format!("panic at {place}"), &format!("{}\n{text}", self.last()));
        }
        self.case += 1;
        if self.case.is_multiple_of(64) {
            println!("at\t{}", self.case);
        }
    }

    fn last(&self) -> String {
        let mut text = vec![0; 2000];
        let n = self.now.read_at(&mut text, 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..n]).trim_end().to_string()
    }

    /// Notes the call that comes, for who finds this process dead.
    fn begin(&mut self, what: &str) {
        self.calls += 1;
        let text = format!("{}\t{what}", self.case);
        if self.alone {
            eprintln!("{text}");
        }
        let mut text = text.into_bytes();
        text.truncate(1999);
        text.resize(2000, b' ');
        self.now.write_at(&text, 0).unwrap();
    }

    fn calls_of(&mut self, r: &mut Random, device: Device) -> Option<()> {
        let mut pool: Vec<Tensor> = vec![];
        for _ in 0..2 {
            pool.extend(any_tensor(r, device));
        }
        let mesh = Placement::all(device).ok()?;
        for _ in 0..3 + r.below(4) {
            let (what, (got, line)) = match r.below(10) {
                0..6 => self.by_name(r, &pool, device, &mesh)?,
                _ => self.method(r, &pool, device)?,
            };
            match got {
                Ok(outs) => {
                    self.values += 1;
                    for t in outs.into_iter().take(3) {
                        self.read(r, &what, &t);
                        pool.push(t);
                    }
                    let over = pool.len().saturating_sub(6);
                    pool.drain(..over);
                }
                Err(e) => self.judge(&what, &e, line),
            }
        }
        Some(())
    }

    /// Reads a result, also one that does not fit into memory.
    fn read(&mut self, r: &mut Random, what: &str, t: &Tensor) {
        let _ = (t.numel() <= 1 << 16).then(|| format!("{t}"));
        if t.numel() > 1 << 16 && !(t.numel() >= 1 << 33 && r.percent(20)) {
            return;
        }
        self.begin(&format!("to_f64_vec({t:?}) of {what}"));
        let (got, line) = here!(t.to_f64_vec());
        match got {
            Ok(v) => assert_eq!(v.len(), t.numel()),
            Err(e) => self.judge("to_f64_vec|cast()", &e, line),
        }
    }

    /// What every error must say.
    fn judge(&mut self, what: &str, e: &Error, line: u32) {
        self.errors += 1;
        self.memory += u64::from(e.kind() == ErrorKind::Memory);
        let text = e.to_string();
        let name = what.split('(').next().unwrap_or(what);
        let wrong = |why: &str| finding(self.case, &format!("{why}: {name}"), &format!("{what}\n{text}"));
        match e.site() {
            None => wrong("no line"),
            Some(s) if !s.file.ends_with("calls/case.rs") => wrong("a line of oflow's"),
            Some(s) if s.line != line => wrong("another line"),
            _ => {}
        }
        // Several names: the method, or the op that it calls.
        let head = text.split(['(', ':']).next().unwrap_or_default();
        let some_op = || name.ends_with(ANY_OP) && (find(head).is_ok() || head == "range");
        // The function of a module is named by itself.
        let named = |n: &str| text.contains(n) || n.rsplit('.').next().is_some_and(|last| text.contains(last));
        if !name.split('|').any(named) && !some_op() {
            wrong("the op is not named");
        }
        if text.contains("src/") {
            wrong("a path of oflow's");
        }
        // What a kernel finds out depends on values: indices, and divisors that are integers. On a stream a later call may be told of it: it names the op.
        let by_values = [
            "embedding",
            "embedding_grad",
            "one_hot",
            "cross_entropy",
            "nll_pick",
            "masked_spread",
            "index_select",
            "index_sum",
            "wrap_index",
            "gather",
            "gather_last",
            "scatter_sum",
            "scatter_into",
            "scatter_fill",
            "count_index",
            "last_index",
            "floor_divide",
            "remainder",
            "fmod",
            "pow",
            "multinomial",
            "cross_entropy_grad",
        ];
        // Gradients too divide by what is given to them.
        let divides = text.contains("integers have no quotient by 0");
        let told = |n: &&str| name.contains(*n) || text.contains(&format!("{n}: "));
        if e.kind() == ErrorKind::Value && !divides && !by_values.iter().any(told) {
            wrong("refused by the kernel");
        }
    }

    /// Whether the call may be made: it is small, or must be refused.
    fn may(&mut self, op: Option<&Op>, inputs: &[Option<Tensor>], attrs: &[(&str, AttrValue)]) -> bool {
        let elements: usize = inputs.iter().flatten().fold(0, |n: usize, t| n.saturating_add(t.numel()));
        let allowed = || -> Option<bool> {
            let op = op?;
            // Such an op looks at all elements before it knows how many it writes.
            if op.length.is_some() && elements > MOST_ELEMENTS {
                return Some(false);
            }
            let (attrs, runtime) = resolve_attrs(op, attrs).ok()?;
            let types: Vec<_> = inputs.iter().map(|t| t.as_ref().map(|t| t.ty().clone())).collect();
            let kinds: Vec<_> = runtime.iter().map(|s| s.kind()).collect();
            let infer = InferCtx { op, inputs: &types, attrs: &attrs, runtime_kinds: &kinds };
            match op.infer(&infer) {
                Err(_) => Some(true),
                Ok(outs) => {
                    let n: usize = outs.iter().map(|t| t.len()).max().unwrap_or(0);
                    Some(n >= 1 << 33 || (n <= MOST_ELEMENTS && elements <= MOST_ELEMENTS))
                }
            }
        };
        // A refusal of inference must not end the case: what panics there is found by the call.
        let may = catch_unwind(AssertUnwindSafe(allowed)).unwrap_or(Some(true)).unwrap_or(elements <= MOST_ELEMENTS);
        self.skipped += u64::from(!may);
        may
    }

    fn by_name(
        &mut self,
        r: &mut Random,
        pool: &[Tensor],
        device: Device,
        mesh: &Placement,
    ) -> Option<(String, Called)> {
        let global = r.percent(15);
        let place = |r: &mut Random, t: Tensor| -> Tensor {
            if !global || t.is_global() {
                return t;
            }
            let sbp = *r.of(&[Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1), Sbp::PARTIAL_SUM]);
            let made = distribute(&t, (mesh, NdSbp::from(sbp)));
            made.unwrap_or(t)
        };
        let target = |r: &mut Random| match r.below(20) {
            0 => Target::Local(Device::Cuda),
            1..4 => Target::Global(
                mesh.clone(),
                NdSbp::from(*r.of(&[Sbp::Broadcast, Sbp::Split(0), Sbp::Split(9), Sbp::PARTIAL_SUM])),
            ),
            _ => Target::Local(device),
        };
        let mut args: Vec<Arg> = vec![];
        let mut named: Vec<(&str, Arg)> = vec![];
        let (name, called): (String, String);
        let mut also = None;
        // Positions of attributes that are given as none: no tensor is missing there.
        let mut left_out = vec![];
        let op;
        if r.percent(75) {
            // As a sample of the op has it, with something wrong.
            let (o, samples) = r.of(&self.ops).clone();
            if samples.is_empty() {
                return Some((o.name().into(), (Ok(vec![]), 0)));
            }
            name = o.name().to_string();
            // By its full name: a function may have that of the op and take other arguments.
            called = format!("{}.{}", o.domain, o.sig.name);
            op = Some(o);
            let sample = r.of(&samples).clone();
            if o.sig.inputs.is_empty() {
                args.push(target(r).into());
            }
            let mut tensors = vec![];
            for spec in &sample.inputs {
                let made = match spec {
                    _ if r.percent(2) => None,
                    Some(_) if r.percent(5) && !pool.is_empty() => Some(r.of(pool).clone()),
                    Some(spec) => Some(like(r, spec, device).ok()?),
                    None => None,
                };
                tensors.push(made.map(|t| place(r, t)));
            }
            let fixed = o.sig.inputs.len() - o.sig.repeating();
            for t in tensors.iter().take(if o.sig.repeating() > 0 { fixed } else { usize::MAX }) {
                args.push(t.as_ref().map_or(Arg::None, Arg::from));
            }
            if o.sig.repeating() > 0 {
                args.push(Arg::Tensors(tensors.iter().skip(fixed).flatten().cloned().collect()));
            }
            for a in o.sig.attrs.iter().chain(&o.sig.runtime) {
                let given = sample.attrs.iter().find(|(n, _)| *n == a.name).map(|(_, v)| v.clone());
                let v = if r.percent(20) { Some(made::attr(r, a.kind)) } else { given };
                if let Some(v) = v.filter(|_| !r.percent(2)) {
                    named.push((a.name.as_str(), Arg::Attr(v)));
                }
            }
        } else {
            let f = r.of(&self.functions).clone();
            name = f.sig.name.clone();
            called = name.clone();
            // Code may call any op, and says which one refused.
            (also, op) = match &f.body {
                FnBody::Op(op) | FnBody::InPlace(op) => (Some(op.clone()), find(op).ok()),
                FnBody::Code(_) | FnBody::Value(_) => (Some(ANY_OP.to_string()), None),
            };
            let params: &'static [_] = Vec::leak(f.sig.params.clone());
            for p in params {
                let a = match p.kind {
                    _ if r.percent(4) => Arg::None,
                    ParamKind::Tensor => Arg::Tensor({
                        let t = if r.percent(50) && !pool.is_empty() {
                            r.of(pool).clone()
                        } else {
                            any_tensor(r, device).ok()?
                        };
                        place(r, t)
                    }),
                    ParamKind::TensorTuple => {
                        let n = r.below(4);
                        Arg::Tensors((0..n).map(|_| any_tensor(r, device)).collect::<Result<_>>().ok()?)
                    }
                    ParamKind::Target => target(r).into(),
                    ParamKind::Generator => Arg::from(&oflow::Generator::new(r.below(9) as u64)),
                    ParamKind::TensorIndex => {
                        let n = r.below(4);
                        Arg::Index((0..n).map(|_| made::index(r, pool, device)).collect::<Result<_>>().ok()?)
                    }
                    ParamKind::Attr(k) => Arg::Attr(made::attr(r, k)),
                };
                if matches!((&a, p.kind), (Arg::None, ParamKind::Attr(_))) {
                    left_out.push(args.len());
                }
                if p.keyword_only { named.push((p.name.as_str(), a)) } else { args.push(a) }
            }
        }
        let mut tensors: Vec<Option<Tensor>> = vec![];
        for (i, a) in args.iter().enumerate() {
            match a {
                Arg::Tensor(t) => tensors.push(Some(t.clone())),
                Arg::Tensors(v) => tensors.extend(v.iter().cloned().map(Some)),
                Arg::None if !left_out.contains(&i) => tensors.push(None),
                _ => {}
            }
        }
        let attrs: Vec<(&str, AttrValue)> = named
            .iter()
            .filter_map(|(n, a)| match a {
                Arg::Attr(v) => Some((*n, v.clone())),
                _ => None,
            })
            .collect();
        let given: Vec<String> =
            args.iter().map(tell).chain(named.iter().map(|(n, a)| format!("{n}={}", tell(a)))).collect();
        // A function may be named otherwise than its op.
        let names = also.filter(|op| *op != name).map_or(name.clone(), |op| format!("{name}|{op}"));
        let what = format!("{names}({})", given.join(", "));
        if !self.may(op, &tensors, &attrs) {
            return Some((what, (Ok(vec![]), 0)));
        }
        self.begin(&what);
        Some((what, here!(call(&called, &args, &named))))
    }

    fn method(&mut self, r: &mut Random, pool: &[Tensor], device: Device) -> Option<(String, Called)> {
        let x = if r.percent(70) && !pool.is_empty() { r.of(pool).clone() } else { any_tensor(r, device).ok()? };
        let (a, b, c, d, s) = (size(r), size(r), size(r), size(r), sizes(r));
        let dim = if r.percent(80) { r.below(x.ndim().max(1)) as i64 } else { a };
        let shape: Vec<usize> = s.iter().map(|n| *n as usize).collect();
        let small = x.numel() <= MOST_ELEMENTS;
        let which = r.below(26);
        let name = [
            "reshape",
            "expand",
            "narrow|slice",
            "select|slice",
            "slice",
            "transpose|permute",
            "permute",
            "flatten|reshape",
            "unsqueeze|reshape",
            "squeeze|reshape",
            "split|slice",
            "chunk|split|slice",
            "add_|add_scalar",
            "mul_|mul",
            "copy_|assign",
            "zero_|masked_fill",
            "zeros|full",
            "arange|range",
            "rand",
            "randint",
            "from_vec",
            "cat|concat",
            "stack|concat|reshape",
            "sum",
            "backward",
            "detach",
        ][which];
        let what = format!("{name}({x:?}; {a}, {b}, {c}, {d}, {s:?}, dim {dim})");
        let touched = matches!(which, 12..16 | 21..25);
        let source_is_large = matches!(which, 16 | 18 | 19) && {
            let n = shape.iter().fold(1usize, |n, d| n.saturating_mul(*d));
            n > MOST_ELEMENTS && n < 1 << 33
        };
        let range_is_large = which == 17 && ((MOST_ELEMENTS as i64)..1 << 33).contains(&a);
        if (touched && !small) || source_is_large || range_is_large {
            self.skipped += 1;
            return Some((what, (Ok(vec![]), 0)));
        }
        self.begin(&what);
        let y = if pool.is_empty() { x.clone() } else { r.of(pool).clone() };
        if touched && y.numel() > MOST_ELEMENTS {
            return Some((what, (Ok(vec![]), 0)));
        }
        let local = if r.percent(20) { device.dtype(made::dtype(r)) } else { device.into_target() };
        let (got, line) = match which {
            0 => here!(one(x.reshape(&s))),
            1 => here!(one(x.expand(&s))),
            2 => here!(one(x.narrow(dim, b, c))),
            3 => here!(one(x.select(dim, b))),
            4 => here!(one(x.slice(dim, b, c, d))),
            5 => here!(one(x.transpose(a, b))),
            6 => here!(one(x.permute(&s))),
            7 => here!(one(x.flatten(a, b))),
            8 => here!(one(x.unsqueeze(a))),
            9 => here!(one(x.squeeze(dim))),
            10 if a == 0 || x.shape().get(dim as usize).is_none_or(|n| n / (a as usize).max(1) < 64) => {
                here!(x.split(a as usize, dim))
            }
            11 if (a as usize) < 64 => here!(x.chunk(a as usize, dim)),
            10 | 11 => (Ok(vec![]), 0),
            12 => here!(x.add_(1.5).map(|_| vec![])),
            13 => here!(x.mul_(&y).map(|_| vec![])),
            14 => here!(x.copy_(&y).map(|_| vec![])),
            15 => here!(x.zero_().map(|_| vec![])),
            16 => here!(one(zeros(&shape, &local))),
            17 => here!(one(range(b, a, c, &local))),
            18 => here!(one(rand(&shape, &local))),
            19 => here!(one(randint(a, b, &shape, &local))),
            20 => here!(one(from_vec(vec![1.0f32; 6], &shape, &local))),
            21 => here!(one(cat([&x, &y], dim))),
            22 => here!(one(stack([&x, &y], a))),
            23 => here!(one(x.sum(dim))),
            24 => here!(x.backward().map(|_| vec![])),
            _ => here!(one(Ok(x.detach()))),
        };
        Some((what, (got, line)))
    }
}
