//! Repeated sections of graphs: a loop of the plan has the bits of the loop of calls, whatever it accumulates, carries and writes.

use super::graph::{At, Net, bits};
use oflow::graph::{Graph, GraphBuilder, GraphOptions, Iteration, Memory, Passes, Session, SessionOptions, scan};
use oflow::nn::{Module as _, checkpoint};
use oflow::optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer, clip_grad_norm};
use oflow::prelude::*;
use oflow::state::{SaveState, Stateful as _};
use oflow_tests::programs::round_trip;
use std::cell::{Cell, RefCell};

/// Micro-batches of a step, and steps that are compared.
const PARTS: usize = 3;
const STEPS: usize = 3;

/// What repeats a section: a graph, or the loop that it stands for.
enum Loop<'a> {
    Graph(&'a GraphBuilder<'a>),
    Calls,
}

/// The number of an iteration.
enum Turn<'a, 'b> {
    Graph(&'a Iteration<'b>),
    Calls(usize),
}

impl Turn<'_, '_> {
    fn of(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Turn::Graph(i) => i.of(x),
            Turn::Calls(i) => x.select(0, *i as i64),
        }
    }
}

impl Loop<'_> {
    fn repeat(&self, n: usize, mut f: impl FnMut(&Turn<'_, '_>) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        Ok(self.scan(n, vec![], |i, _| Ok((vec![], f(i)?)))?.1)
    }
    fn scan(
        &self,
        n: usize,
        init: Vec<Tensor>,
        mut f: impl FnMut(&Turn<'_, '_>, Vec<Tensor>) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        match self {
            Loop::Graph(g) => g.scan(n, init, |i, carried| f(&Turn::Graph(i), carried)),
            Loop::Calls => {
                let (mut carried, mut all) = (init, vec![]);
                for i in 0..n {
                    let (next, outs) = f(&Turn::Calls(i), carried)?;
                    carried = next;
                    all.push(outs);
                }
                let columns = 0..all.first().map_or(0, Vec::len);
                let column = |c: usize| stack(&all.iter().map(|outs| &outs[c]).collect::<Vec<_>>(), 0);
                Ok((carried, columns.map(column).collect::<Result<_>>()?))
            }
        }
    }
}

/// The micro-batches of a step, stacked.
fn batch(at: &At, step: usize) -> Result<(Tensor, Tensor)> {
    let all = (0..PARTS).map(|p| at.batch(step * PARTS + p)).collect::<Result<Vec<_>>>()?;
    let x = stack(&all.iter().map(|(x, _)| x).collect::<Vec<_>>(), 0)?;
    Ok((x, stack(&all.iter().map(|(_, y)| y).collect::<Vec<_>>(), 0)?))
}

/// Trains with a step that repeats, as calls and as a graph.
fn same(
    what: &str,
    at: &At,
    passes: &Passes,
    step: impl Fn(&Loop<'_>, &Net, &mut AdamW, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let make = || -> Result<(Net, AdamW)> {
        manual_seed(11);
        let net = Net::new(at, 0.2)?;
        let opt = AdamW::new(net.parameters(), AdamWOptions { lr: 0.05, ..Default::default() });
        Ok((net, opt))
    };
    let state = |net: &Net, opt: &AdamW| -> Result<Vec<(String, Vec<u64>)>> {
        let _quiet = no_grad();
        let mut all = vec![];
        for p in net.parameters() {
            all.push((String::new(), bits(&p)?));
        }
        let mut saved = SaveState::new();
        opt.save_state(&mut saved)?;
        let (tensors, values) = saved.into_parts();
        for (name, t) in &tensors {
            all.push((name.clone(), bits(t)?));
        }
        all.push((format!("{values:?}"), vec![]));
        Ok(all)
    };
    let (net, mut opt) = make()?;
    let mut want = vec![];
    for n in 0..STEPS {
        let (x, y) = batch(at, n)?;
        want.push(bits(&step(&Loop::Calls, &net, &mut opt, &x, &y)?)?);
    }
    let (after, want_state) = (rand([3], Device::Cpu)?.to_vec::<f32>()?, state(&net, &opt)?);
    let (net, mut opt) = make()?;
    let (x0, y0) = batch(at, 0)?;
    let mut graph = Graph::build(
        |g| {
            let (x, y) = (g.input("x", &x0)?, g.input("y", &y0)?);
            step(&Loop::Graph(g), &net, &mut opt, &x, &y)
        },
        GraphOptions::default().passes(passes.clone()),
    )?;
    round_trip(graph.program());
    assert!(net.parameters().iter().all(|p| p.grad().is_none()), "{what}: a gradient is left");
    for (n, want) in want.iter().enumerate() {
        let (x, y) = batch(at, n)?;
        let have = bits(&graph.run(&[&x, &y])?)?;
        assert_eq!(&have, want, "{what}: step {n}\n{}", graph.explain());
    }
    for ((name, have), (_, want)) in state(&net, &opt)?.iter().zip(&want_state) {
        assert_eq!(have, want, "{what}: {name}\n{}", graph.explain());
    }
    assert_eq!(state(&net, &opt)?.last(), want_state.last(), "{what}: numbers of steps");
    assert_eq!(rand([3], Device::Cpu)?.to_vec::<f32>()?, after, "{what}: the generator is elsewhere");
    Ok(())
}

fn everywhere(f: impl Fn(&At) -> Result<()> + Sync) {
    f(&At(None)).unwrap();
    for (ranks, sizes, sbp) in [(1, vec![1], sbp![S(0)]), (2, vec![2], sbp![S(0)]), (4, vec![2, 2], sbp![S(0), B])] {
        oflow::run_ranks(ranks, |_| {
            let axes: Vec<(&str, usize)> = ["dp", "tp"].into_iter().zip(sizes.iter().copied()).collect();
            f(&At(Some((Placement::all(Device::Cpu)?.mesh(&axes)?, sbp.clone()))))
        })
        .unwrap();
    }
}

/// The loss of one micro-batch.
fn loss(net: &Net, i: &Turn<'_, '_>, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    net.forward(&i.of(x)?)?.cross_entropy(&i.of(y)?)?.mul(1.0 / PARTS as f64)
}

#[test]
fn accumulated_gradients_have_the_bits_of_the_loop_of_calls() {
    everywhere(|at| {
        for passes in [Passes::none(), Passes::default(), Passes::default().memory(Memory::Least)] {
            same("accumulation", at, &passes, |l, net, opt, x, y| {
                opt.zero_grad();
                let losses = l.repeat(PARTS, |i| {
                    let loss = loss(net, i, x, y)?;
                    loss.backward()?;
                    Ok(vec![loss.detach()])
                })?;
                clip_grad_norm(opt.parameters(), 0.1)?;
                opt.step()?;
                losses[0].sum(())
            })?;
        }
        same("gradients from before the section", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            net.forward(&x.select(0, 0)?)?.square()?.mean(())?.backward()?;
            let losses = l.repeat(PARTS, |i| {
                let loss = loss(net, i, x, y)?;
                loss.backward()?;
                Ok(vec![loss])
            })?;
            opt.step()?;
            losses[0].detach().sum(())
        })?;
        same("a section in a section", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            let losses = l.repeat(2, |_| {
                l.repeat(PARTS, |i| {
                    let loss = loss(net, i, x, y)?;
                    loss.backward()?;
                    Ok(vec![loss.detach()])
                })
            })?;
            opt.step()?;
            losses[0].sum(())
        })
    });
}

#[test]
fn gradients_that_are_reduced_once_have_the_bits_of_the_loop_of_calls() {
    everywhere(|at| {
        same("no_sync", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            let first = PARTS - 1;
            let (some, labels) = (x.narrow(0, 0, first)?, y.narrow(0, 0, first)?);
            let losses = no_sync().run(|| {
                l.repeat(first, |i| {
                    let loss = loss(net, i, &some, &labels)?;
                    loss.backward()?;
                    Ok(vec![loss.detach()])
                })
            })?;
            let last = net.forward(&x.select(0, first as i64)?)?.cross_entropy(&y.select(0, first as i64)?)?;
            last.backward()?;
            opt.step()?;
            losses[0].sum(())
        })
    });
}

#[test]
fn steps_in_a_section_are_the_steps_of_the_loop_of_calls() {
    everywhere(|at| {
        for passes in [Passes::none(), Passes::default()] {
            same("steps", at, &passes, |l, net, opt, x, y| {
                let losses = l.repeat(PARTS, |i| {
                    opt.zero_grad();
                    let loss = loss(net, i, x, y)?;
                    loss.backward()?;
                    opt.step()?;
                    Ok(vec![loss.detach()])
                })?;
                losses[0].sum(())
            })?;
        }
        same("cleared after the step", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            let losses = l.repeat(PARTS, |i| {
                let loss = loss(net, i, x, y)?;
                loss.backward()?;
                opt.step()?;
                opt.zero_grad();
                Ok(vec![loss.detach()])
            })?;
            losses[0].sum(())
        })?;
        same("steps on all gradients so far", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            let losses = l.repeat(PARTS, |i| {
                let loss = loss(net, i, x, y)?;
                loss.backward()?;
                clip_grad_norm(opt.parameters(), 0.5)?;
                opt.step()?;
                Ok(vec![loss.detach()])
            })?;
            losses[0].sum(())
        })?;
        let scaler = || RefCell::new(GradScaler::new(GradScalerOptions { growth_interval: 2, ..Default::default() }));
        let kept = [scaler(), scaler()];
        same("a scaler in the section", at, &Passes::default(), |l, net, opt, x, y| {
            let scaler = &kept[usize::from(matches!(l, Loop::Calls))];
            let losses = l.repeat(PARTS, |i| {
                let mut scaler = scaler.borrow_mut();
                opt.zero_grad();
                let loss = loss(net, i, x, y)?;
                scaler.scale(&loss)?.backward()?;
                scaler.step(opt)?;
                scaler.update();
                Ok(vec![loss.detach()])
            })?;
            losses[0].sum(())
        })?;
        assert_eq!(kept[0].borrow().current(), kept[1].borrow().current());
        same("recomputation and autocast", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            let losses = l.repeat(PARTS, |i| {
                let logits = {
                    let _amp = autocast(Autocast::Bf16);
                    checkpoint(|x: &Tensor| net.forward(x), &i.of(x)?)?
                };
                let loss = logits.cast(DType::F32)?.cross_entropy(&i.of(y)?)?;
                loss.backward()?;
                Ok(vec![loss.detach()])
            })?;
            opt.step()?;
            losses[0].sum(())
        })
    });
}

#[test]
fn what_is_carried_and_written_is_that_of_the_loop_of_calls() {
    everywhere(|at| {
        let state = full([6], 1.0, at.target())?;
        same("a recurrence that is trained", at, &Passes::default(), |l, net, opt, x, y| {
            opt.zero_grad();
            let begin = full([6], 0.5, at.target())?;
            let (last, losses) = l.scan(PARTS, vec![begin], |i, carried| {
                let x = i.of(x)?.add(&carried[0])?;
                let loss = net.forward(&x)?.cross_entropy(&i.of(y)?)?;
                loss.backward()?;
                let next = x.mean(0)?.mul(0.5)?;
                let next = match carried[0].global() {
                    Some(g) => next.to_global(&g.sbp)?,
                    None => next,
                };
                {
                    let _quiet = no_grad();
                    state.mul_(0.5)?.add_(&next)?;
                }
                Ok((vec![next.add(&state)?.detach()], vec![loss.detach()]))
            })?;
            opt.step()?;
            let _quiet = no_grad();
            let end = losses[0].sum(())?.add(&last[0].sum(())?)?.add(&state.sum(())?)?;
            state.fill_(1.0)?;
            Ok(end)
        })
    });
}

#[test]
fn a_capture_and_its_program_do_not_grow_with_the_number_of_iterations() {
    let nodes = |n: usize| -> Result<(usize, usize, usize)> {
        let net = Net::new(&At(None), 0.2)?;
        let opt = AdamW::new(net.parameters(), AdamWOptions::default());
        let (x0, y0) = (zeros([n, 8, 6], Device::Cpu)?, zeros([n, 8], Device::Cpu.dtype(DType::I64))?);
        let calls = Cell::new(0);
        let mut graph = Graph::build(
            |g| {
                let (x, y) = (g.input("x", &x0)?, g.input("y", &y0)?);
                opt.zero_grad();
                g.repeat(n, |i| {
                    calls.set(calls.get() + 1);
                    let loss = net.forward(&i.of(&x)?)?.cross_entropy(&i.of(&y)?)?;
                    loss.backward()?;
                    Ok(loss.detach())
                })
            },
            GraphOptions::default(),
        )?;
        assert_eq!(graph.run(&[&x0, &y0])?.shape(), [n]);
        let sections = graph.program().sections();
        let [section] = &sections[..] else { panic!("{}", graph.explain()) };
        assert_eq!(section.time_shape[..], [n as u64]);
        let program = graph.program();
        assert_eq!(program.time_shape(program.outputs[0])[..], [n as u64]);
        assert_eq!(program.time_shape(program.input("x").unwrap())[..], [1]);
        Ok((program.nodes.len(), section.body.nodes.len(), calls.get()))
    };
    let few = nodes(2).unwrap();
    assert_eq!((nodes(50).unwrap(), few.2), (few, 1));
}

#[test]
fn a_section_that_is_not_repeated_does_nothing() {
    let f = |l: &Loop<'_>, w: &Tensor, x: &Tensor| -> Result<Vec<Tensor>> {
        w.set_grad(None)?;
        let none = x.narrow(0, 0, 0)?;
        let (last, _) = l.scan(0, vec![x.narrow(0, 0, 1)?.reshape([2])?], |i, carried| {
            let noise = rand([2], Device::Cpu)?;
            let loss = i.of(&none)?.mul(w)?.add(&noise)?.sum(())?;
            loss.backward()?;
            let _quiet = no_grad();
            w.mul_(2.0)?;
            Ok((vec![carried[0].add(&noise)?], vec![loss.detach()]))
        })?;
        assert!(w.grad().is_none());
        Ok(vec![last[0].clone(), w.detach().add(1.0)?, rand([2], Device::Cpu)?])
    };
    let w = full([2], 3.0, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let x = ones([3, 2], Device::Cpu).unwrap();
    let all = |made: Vec<Tensor>| made.iter().map(|t| bits(t).unwrap()).collect::<Vec<_>>();
    manual_seed(3);
    let want = all(f(&Loop::Calls, &w, &x).unwrap());
    let mut graph = Graph::build(|g| f(&Loop::Graph(g), &w, &x), GraphOptions::default()).unwrap();
    manual_seed(3);
    assert_eq!(all(graph.run(&[]).unwrap()), want);
    assert!(graph.program().sections().is_empty(), "{}", graph.explain());
    let mut stacked = Graph::build(|g| g.repeat(0, |_| x.mul(2.0)), GraphOptions::default()).unwrap();
    assert_eq!(stacked.run(&[]).unwrap().shape(), [0, 3, 2]);
}

/// The error of a graph that repeats.
fn refused(f: impl FnOnce(&GraphBuilder<'_>) -> Result<Tensor>) -> String {
    Graph::build(f, GraphOptions::default()).map(drop).unwrap_err().to_string()
}

#[test]
fn what_is_not_the_same_in_each_iteration_is_refused_at_its_line_and_nothing_stays() {
    let w = full([2], 3.0, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    w.set_grad(Some(ones([2], Device::Cpu).unwrap())).unwrap();
    let x = ones([3, 2], Device::Cpu).unwrap();
    let told = || (w.version(), bits(&w.detach()).unwrap(), w.grad().map(|g| bits(&g).unwrap()), x.version());
    let before = told();
    let step = |i: &Iteration<'_>| -> Result<Tensor> {
        let loss = i.of(&x)?.mul(&w)?.sum(())?;
        loss.backward()?;
        Ok(loss.detach())
    };
    let kept = RefCell::new(None);
    let cases: Vec<(&str, String)> = vec![
        ("boom", refused(|g| g.repeat(3, |i| step(i).and_then(|_| Err::<Tensor, _>(Error::value("boom")))))),
        ("goes on after a repeated section has failed", {
            refused(|g| {
                let failed = g.repeat(3, |i| step(i).and_then(|_| Err::<Tensor, _>(Error::value("boom"))));
                assert!(failed.is_err());
                x.mul(2.0)
            })
        }),
        ("outlives it", {
            refused(|g| {
                g.repeat(3, |i| {
                    *kept.borrow_mut() = Some(i.of(&x)?.mul(2.0)?);
                    step(i)
                })
            })
        }),
        ("has no slice along dim 0 for each of the 4 iterations", refused(|g| g.repeat(4, step))),
        ("requires a gradient, which slices", refused(|g| g.repeat(2, |i| i.of(&w)))),
        ("is made in the repeated section", refused(|g| g.repeat(3, |i| i.of(&x.mul(2.0)?)))),
        ("requires a gradient", refused(|g| Ok(g.scan(3, x.copy()?, |_, c| Ok((c.mul(&w)?, ())))?.0))),
        ("its next value is", refused(|g| Ok(g.scan(3, x.copy()?, |_, c| Ok((c.sum(0)?, ())))?.0))),
        ("a leaf f32[2] has a gradient only in the first iteration", {
            refused(|g| {
                w.set_grad(None)?;
                w.square()?.sum(())?.backward()?;
                g.repeat(3, |i| {
                    let loss = step(i)?;
                    w.set_grad(None)?;
                    Ok(loss)
                })
            })
        }),
        ("a leaf f32[2] has a gradient from the second iteration on", {
            refused(|g| {
                w.set_grad(None)?;
                g.repeat(3, |i| {
                    assert!(w.grad().is_none());
                    step(i)
                })
            })
        }),
        ("another handle of a tensor", {
            refused(|g| {
                let was = w.detach();
                g.repeat(3, |i| {
                    let _quiet = no_grad();
                    let changed = w.sub(&was)?;
                    w.add_(&i.of(&x)?)?;
                    Ok(changed)
                })
            })
        }),
        ("writes a slice", {
            refused(|g| {
                g.repeat(3, |i| {
                    let row = i.of(&x)?;
                    row.add_(1.0)?;
                    Ok(row)
                })
            })
        }),
        ("names a value inside of a repeated section", {
            refused(|g| {
                g.repeat(3, |i| {
                    let loss = step(i)?;
                    g.name("loss", &loss)?;
                    Ok(loss)
                })
            })
        }),
        ("does not go back into the iterations", {
            refused(|g| {
                let all = g.repeat(3, |i| i.of(&x)?.mul(&w)?.sum(()))?;
                all.sum(())?.backward()?;
                Ok(all)
            })
        }),
    ];
    for (want, have) in cases {
        assert!(have.contains(want) && have.contains("graph_repeat.rs"), "{want}: {have}");
        assert_eq!(told(), before, "{want}");
    }
    let split = oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones([2, 2], (&mesh, sbp![S(0)]))?;
        Ok(refused(|g| g.repeat(2, |i| i.of(&x))))
    });
    assert!(split.unwrap()[0].contains("is split along dim 0"));
    // The gradient of a graph goes through no section.
    let graph = Graph::build(|g| g.repeat(3, |i| i.of(&g.input("x", &x)?)?.sum(()))?.sum(()), GraphOptions::default());
    let graph = graph.unwrap();
    let (y, x) = (graph.program().outputs[0], graph.program().input("x").unwrap());
    let e = graph.gradient(&[y], &[x]).map(drop).unwrap_err().to_string();
    assert!(e.contains("a graph has no gradient through one"), "{e}");
}

/// An iteration that fails, in a run: the error has the call's line, and the next run is as good as the first.
#[test]
fn an_iteration_that_fails_is_told_with_its_line() {
    let table = ones([4, 2], Device::Cpu).unwrap();
    let rows = from_vec::<i64>(vec![0, 1, 3], [3], Device::Cpu).unwrap();
    let bad = from_vec::<i64>(vec![0, 1, 9], [3], Device::Cpu).unwrap();
    let total = zeros([2], Device::Cpu).unwrap();
    let mut graph = Graph::build(
        |g| {
            let rows = g.input("rows", &rows)?;
            g.repeat(3, |i| {
                let row = table.index_select(0, &i.of(&rows)?.reshape([1])?)?.reshape([2])?;
                total.add_(&row)?;
                Ok(row)
            })
        },
        GraphOptions::default(),
    )
    .unwrap();
    let e = graph.run(&[&bad]).map(drop).unwrap_err().to_string();
    assert!(e.contains("index_select") && e.contains("graph_repeat.rs"), "{e}");
    assert_eq!(total.to_vec::<f32>().unwrap(), [2.0; 2]);
    assert_eq!(graph.run(&[&rows]).unwrap().to_vec::<f32>().unwrap(), [1.0; 6]);
    assert_eq!(total.to_vec::<f32>().unwrap(), [5.0; 2]);
}

#[test]
fn a_step_of_a_session_repeats_and_explains_it() {
    let w = full([2], 2.0, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let batch = ones([4, 2], Device::Cpu).unwrap();
    let mut session = Session::new(SessionOptions::default());
    let mut run = || {
        session.run(&[("x", &batch)], |s| {
            let x = s.input("x")?;
            w.set_grad(None)?;
            let losses = s.repeat(4, |i| {
                let loss = i.of(&x)?.mul(&w)?.sum(())?;
                loss.backward()?;
                Ok(loss.detach())
            })?;
            let (count, ()) = s.scan(3, zeros([], Device::Cpu)?, |_, n| Ok((n.add(1.0)?, ())))?;
            Ok((losses, w.grad().ok_or_else(|| Error::value("no gradient"))?, count))
        })
    };
    let (losses, gradient, count) = run().unwrap().unwrap();
    assert_eq!(losses.to_vec::<f32>().unwrap(), [4.0; 4]);
    assert_eq!((gradient.to_vec::<f32>().unwrap(), count.item().unwrap()), (vec![4.0; 2], 3.0));
    let text = session.graphs().next().unwrap().explain();
    assert!(text.contains("repeat: time shape [4]") && text.contains("repeat: time shape [3]"), "{text}");
}

/// A function that repeats makes its calls where no graph is captured.
#[test]
fn a_scan_outside_of_a_graph_is_a_loop_of_calls() {
    let x = from_vec::<f32>((0..6).map(|n| n as f32).collect(), [3, 2], Device::Cpu).unwrap();
    let f = |x: &Tensor| {
        scan(3, zeros([2], Device::Cpu)?, |i, sum| {
            let next = sum.mul(0.5)?.add(&i.of(x)?)?;
            Ok((next.clone(), next))
        })
    };
    let (sum, sums) = f(&x).unwrap();
    let mut graph = Graph::build(|g| f(&g.input("x", &x)?), GraphOptions::default()).unwrap();
    let (again, all) = graph.run(&[&x]).unwrap();
    assert_eq!((bits(&again).unwrap(), bits(&all).unwrap()), (bits(&sum).unwrap(), bits(&sums).unwrap()));
    assert!(
        scan(2, (), |i, ()| Ok(((), i.of(&x)?))).is_err_and(|e| e.to_string().contains("each of the 2 iterations"))
    );
    assert!(scan(0, (), |_, ()| x.relu().map(|y| ((), y))).is_err_and(|e| e.to_string().contains("repeated 0 times")));
}
