//! Policies about boxings: what is denied, with which words, on every rank alike and before any byte moves.

use oflow::prelude::*;
use oflow::{ErrorKind, World};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// What this rank has sent so far.
fn sent(w: &World) -> Result<u64> {
    Ok(w.ctx().comm()?.traffic().bytes_sent)
}

#[test]
fn i18_a_denied_boxing_is_the_same_error_on_every_rank_and_moves_nothing() {
    let texts = oflow::run_ranks(3, |w| {
        // Rank 1 is outside.
        let mesh = Placement::new(Device::Cpu, &[2, 0], &[2])?;
        let x = ones([8, 4], (&mesh, sbp![S(0)]))?;
        let weight = ones([4, 4], (&mesh, sbp![S(0)]))?;
        let line = line!() + 1;
        let call = || x.matmul(&weight);
        // The plan is cached and the boxed copy remembered before the scope begins: it is denied all the same.
        call()?;
        call()?;
        let (before, made) = (sent(w)?, w.ctx().ops_issued());
        let guard = boxing_policy(Policy::Deny);
        let e = call().unwrap_err();
        assert!(e.kind() == ErrorKind::Denied && e.is_logical(), "{e}");
        assert_eq!((sent(w)?, w.ctx().ops_issued()), (before, made), "the error came after the call was issued");
        assert_eq!(call().unwrap_err().to_string(), e.to_string());
        let text = e.to_string();
        let (what, price) = text.split_once(" 64 B between ranks, ").unwrap();
        assert_eq!(
            what,
            format!(
                "matmul(f32[8, 4] [S(0)], f32[4, 4] [S(0)]) on {mesh}: boxing is denied here: input 1 `b` of matmul would go from [S(0)] to [B]:"
            )
        );
        let (price, rest) = price.split_once(" us").unwrap();
        assert!(price.parse::<f64>().unwrap() > 0.0);
        assert_eq!(
            rest,
            format!(
                "\n  at tests/tensors/policy.rs:{line}\n  help: make input 1 [B] where it is created, or call `to_global(sbp![B])` on it once, outside the scope"
            )
        );
        drop(guard);
        assert_eq!(call()?.sum(())?.item()?, 128.0, "the program goes on");
        Ok(text)
    })
    .unwrap();
    assert!(texts.iter().all(|t| *t == texts[0]), "{texts:#?}");
}

#[test]
fn what_the_program_asks_for_is_allowed_unless_everything_is_denied() {
    oflow::run_ranks(2, |w| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 4], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let b = ones([4, 4], (&mesh, sbp![B]))?;
        {
            let _guard = boxing_policy(Policy::Deny);
            // Its gradient comes as S(1) and is asked for, too, by what states it; reading is.
            x.to_global(sbp![B].grad_sbp(sbp![S(0)]))?.mul(&b)?.sum(())?.backward()?;
            assert_eq!(x.to_vec::<f32>()?.len(), 16);
            ones([2], Device::Cpu)?.to_global((&mesh, sbp![B]))?;
        }
        let before = sent(w)?;
        let _guard = boxing_policy(Policy::DenyAll);
        let local = ones([2], Device::Cpu)?;
        let denied = [
            x.to_global(sbp![B]).map(drop),
            x.to_vec::<f32>().map(drop),
            local.to_global((&mesh, sbp![S(0)])).map(drop),
            x.softmax(0).map(drop),
        ];
        for e in denied.map(|r| r.unwrap_err()) {
            assert_eq!(e.kind(), ErrorKind::Denied, "{e}");
            assert!(e.to_string().contains("at tests/tensors/policy.rs:"), "{e}");
        }
        // Slices stay on the rank, and what is whole is read without communication.
        assert_eq!(x.add(&b)?.sbp()?, &sbp![S(0)]);
        assert_eq!(b.to_global(sbp![S(1)])?.sbp()?, &sbp![S(1)]);
        assert_eq!(b.to_vec::<f32>()?, [1.0; 16]);
        assert_eq!(sent(w)?, before);
        Ok(())
    })
    .unwrap();
}

#[test]
fn lowerings_and_backward_name_their_lines() {
    oflow::run_ranks(2, |w| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 6], (&mesh, sbp![S(1)]))?.requires_grad_(true)?;
        let weight = ones([6, 2], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let deny = || boxing_policy(Policy::Deny);
        let before = sent(w)?;
        let (e, line) = {
            let _guard = deny();
            (x.softmax(1).unwrap_err(), line!())
        };
        let text = e.to_string();
        assert!(text.starts_with("softmax(f32[4, 6] [S(1)]) on cpu[2]: boxing is denied here: "), "{text}");
        assert!(text.contains("the ranks do softmax together"), "{text}");
        assert!(
            text.contains(&format!("at tests/tensors/policy.rs:{line}\n  help: make input 0 [S(0)] where")),
            "{text}"
        );
        assert_eq!(sent(w)?, before);

        let line = line!() + 1;
        let loss = x.matmul(&weight)?.relu()?.sum(())?;
        {
            let _guard = deny();
            let before = sent(w)?;
            let text = loss.backward().unwrap_err().to_string();
            assert!(text.contains("us, in backward") && text.contains("end the scope before `backward()`"), "{text}");
            assert!(
                text.contains(&format!("at tests/tensors/policy.rs:{line}\n")),
                "the line of the forward call: {text}"
            );
            assert_eq!(sent(w)?, before);
        }
        // A leaf's gradient is reduced when it is complete: nobody's but backward's own doing.
        let bias = ones([2], (&mesh, sbp![B]))?.requires_grad_(true)?;
        let rows = ones([4, 2], (&mesh, sbp![S(0)]))?;
        let loss = rows.mul(&bias)?.sum(())?;
        let _guard = deny();
        let (text, line) = (loss.backward().unwrap_err().to_string(), line!());
        assert!(text.contains("the gradient of a leaf would go from [P(sum)] to [B]"), "{text}");
        assert!(text.contains("no_sync") && text.contains(&format!("at tests/tensors/policy.rs:{line}\n")), "{text}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_advice_is_true() {
    let layouts_1d = [sbp![B], sbp![S(0)], sbp![S(1)], sbp![P]];
    let layouts_2d = [sbp![B, B], sbp![S(0), B], sbp![B, S(1)], sbp![S(1), S(0)], sbp![P, B], sbp![S(0), P]];
    type Op = fn(&[Tensor]) -> Result<Tensor>;
    let ops: [(&str, usize, Op); 6] = [
        ("matmul", 2, |t| t[0].matmul(&t[1])),
        ("add", 2, |t| t[0].add(&t[1])),
        ("mul", 2, |t| t[0].mul(&t[1])),
        ("relu", 1, |t| t[0].relu()),
        ("softmax", 1, |t| t[0].softmax(1)),
        ("where_", 3, |t| where_(&t[0].gt(0.0)?, &t[1], &t[2])),
    ];
    let counts = oflow::run_ranks(4, |_| {
        let (mut denied, mut changed, mut never) = (0, 0, 0);
        let all = Placement::all(Device::Cpu)?;
        let grid = all.mesh(&[("dp", 2), ("tp", 2)])?;
        for (mesh, layouts) in [(&all, &layouts_1d[..]), (&grid, &layouts_2d[..])] {
            for (name, inputs, op) in ops {
                for k in 0..layouts.len().pow(inputs as u32) {
                    let of = |i: usize| &layouts[k / layouts.len().pow(i as u32) % layouts.len()];
                    let mut tensors: Vec<Tensor> = (0..inputs)
                        .map(|i| ones([4, 4], (mesh, sbp_of(mesh)))?.to_global((mesh, of(i).clone())))
                        .collect::<Result<_>>()?;
                    if name == "where_" && of(0).has_partial() {
                        continue;
                    }
                    let _guard = boxing_policy(Policy::Deny);
                    let Err(e) = op(&tensors) else { continue };
                    denied += 1;
                    let help = e.help_text().unwrap_or_default().to_string();
                    assert_eq!(e.kind(), ErrorKind::Denied, "{e}");
                    if help.starts_with("every way") {
                        never += 1;
                        continue;
                    }
                    // `make input 0 [B] and input 1 [S(0)] where it is created`
                    let advice = help.strip_prefix("make ").and_then(|h| h.split_once(" where")).unwrap().0;
                    for change in advice.split(" and ") {
                        let (i, layout) = change.strip_prefix("input ").and_then(|c| c.split_once(' ')).unwrap();
                        let i: usize = i.parse().unwrap();
                        tensors[i] = tensors[i].to_global(layout.parse::<NdSbp>()?)?;
                        changed += 1;
                    }
                    op(&tensors).unwrap_or_else(|e| panic!("{name} {k}: the advice was: {help}\n{e}"));
                }
            }
        }
        Ok((denied, changed, never))
    })
    .unwrap();
    assert!(counts.iter().all(|c| *c == counts[0]));
    let (denied, changed, never) = counts[0];
    assert!(denied > 100 && changed >= denied - never && never < denied / 10, "{counts:?}");
}

fn sbp_of(mesh: &Placement) -> NdSbp {
    NdSbp::broadcast(mesh.axes())
}

/// Collects what is logged on a thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;
    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

/// Lines logged during `f`, at info and above.
fn logged(f: impl FnOnce() -> Result<()>) -> Result<Vec<String>> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, f)?;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    Ok(text.lines().filter(|l| l.contains("INFO") || l.contains("WARN")).map(str::to_string).collect())
}

#[test]
fn log_tells_of_each_boxing_and_warn_once_of_large_ones() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let small = ones([2, 2], (&mesh, sbp![P]))?;
        let large = ones([64, 64], (&mesh, sbp![P]))?;
        let line = line!() + 2;
        // In-place ops make the remembered boxed copy stale.
        let step = |t: &Tensor| t.mul_(1.0)?.relu().map(drop);
        let twice = || (0..2).try_for_each(|_| [&small, &large].into_iter().try_for_each(step));
        let under = |p: Policy| {
            logged(|| {
                let _guard = boxing_policy(p);
                small.to_global(sbp![P])?; // nothing to tell of
                ones([4], (&mesh, sbp![B]))?.to_global(sbp![S(0)])?;
                twice()
            })
        };
        let all = under(Policy::Log)?;
        let at = format!("boxing at tests/tensors/policy.rs:{line}, forward of relu: f32");
        assert!(all.len() == 4 && all.iter().all(|l| l.contains("INFO") && l.contains(&at)), "{all:#?}");
        let big = under(Policy::WarnAboveBytes(1000))?;
        assert!(
            big.len() == 1 && big[0].contains("WARN") && big[0].contains(&format!("large {at}[64, 64]")),
            "{big:#?}"
        );
        assert_eq!(under(Policy::WarnAboveBytes(1000))?.len(), 0, "once per line");
        assert_eq!(under(Policy::WarnAboveBytes(u64::MAX))?.len(), 0);
        assert_eq!(under(Policy::Allow)?.len(), 0);
        let slow = logged(|| {
            let _guard = boxing_policy(Policy::WarnAboveMicros(1));
            large.mul_(1.0)?.exp()?;
            Ok(())
        })?;
        assert!(slow.len() == 1 && slow[0].contains("forward of exp"), "{slow:#?}");
        Ok(())
    })
    .unwrap();
}

/// The flag that a call reads is one for both: neither scope ends the other.
#[test]
fn lists_of_calls_and_policies_do_not_disturb_each_other() {
    use oflow::interpreter::list_called;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([4, 6], (&mesh, sbp![S(1)]))?;
        let (w, moved) = (ones([6, 8], (&mesh, sbp![S(0)]))?, ones([6, 8], (&mesh, sbp![S(1)]))?);
        let texts =
            |called: &[oflow::interpreter::Called]| -> Vec<String> { called.iter().map(|c| c.to_string()).collect() };
        let product = "matmul [S(1)], [S(0)] -> [P(sum)] on cpu[2]";
        // The second call of its kind has a plan already.
        for _ in 0..2 {
            let line = line!() + 1;
            let (y, called) = list_called(|| x.matmul(&w));
            assert_eq!((texts(&called), called[0].site.line), (vec![product.to_string()], line));
            assert_eq!(y?.sbp()?, &sbp![P]);
        }
        // One scope in another; a lowering is one call; a local call and a change of layout are none.
        let (inner, outer) = list_called(|| -> Result<usize> {
            let (y, inner) = list_called(|| x.matmul(&w));
            y?.to_global(sbp![B])?.softmax(1)?;
            let _kept = oflow::keep_layouts();
            x.softmax(1)?;
            ones([2], Device::Cpu)?.relu()?;
            Ok(inner.len())
        });
        let softmax = ["softmax [B] -> [B] on cpu[2]", "softmax [S(1)] -> [S(1)] (lowered) on cpu[2]"];
        assert_eq!((inner?, texts(&outer)), (1, vec![product.to_string(), softmax[0].into(), softmax[1].into()]));
        // Denied is denied inside a list, listed is listed under a policy, and each ends by itself.
        let guard = boxing_policy(Policy::Deny);
        let (denied, called) = list_called(|| x.matmul(&moved));
        assert_eq!((denied.unwrap_err().kind(), called.len()), (ErrorKind::Denied, 1));
        assert!(x.matmul(&moved).is_err());
        let ((), called) = list_called(|| drop(guard));
        assert!(called.is_empty());
        x.matmul(&moved)?;
        // A panic ends its list.
        assert!(catch_unwind(AssertUnwindSafe(|| list_called(|| panic!("boom")))).is_err());
        let (_, called) = list_called(|| x.matmul(&w));
        assert_eq!(called.len(), 1);
        Ok(())
    })
    .unwrap();
}
