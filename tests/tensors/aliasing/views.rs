//! Random programs of views, writes in place, reads and backward (`tests/golden/views.py` has the grammar): on local tensors
//! against PyTorch, on global ones against the same program with a copy at each view (I15).

use oflow::prelude::*;
use std::collections::BTreeSet;

const GOLDEN: &str = include_str!("../../golden/views.txt");

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(list: &str) -> Vec<T> {
    let inner = list.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').filter(|w| !w.is_empty()).map(|w| w.parse().unwrap()).collect()
}

/// What a program came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    refused: BTreeSet<usize>,
    values: Vec<Vec<f64>>,
    /// None where backward is refused.
    gradients: Option<Vec<Option<Vec<f64>>>>,
}

struct Run<'a> {
    /// Makes a tensor from its value; the number is the variable's.
    enter: &'a dyn Fn(Vec<f64>, Vec<usize>, usize) -> Result<Tensor>,
    /// Copies every view.
    copies: bool,
    /// Statements that are left out.
    skip: BTreeSet<usize>,
}

const VIEWS: &[&str] =
    &["slice", "select", "transpose", "permute", "reshape", "expand", "squeeze", "unsqueeze", "piece", "detach"];

impl Run<'_> {
    fn make(&self, words: &[&str], vars: &[Tensor]) -> Result<Tensor> {
        let int = |i: usize| words[i].parse::<i64>().unwrap();
        let var = |i: usize| &vars[words[i].parse::<usize>().unwrap()];
        let list = |i: usize| numbers::<i64>(words[i]);
        let made = match words[0] {
            "leaf" | "const" => {
                let shape: Vec<usize> = numbers(words[1]);
                let n: usize = shape.iter().product();
                let values = (0..n).map(|i| i as f64 + int(2) as f64).collect();
                return (self.enter)(values, shape, vars.len())?.requires_grad_(words[0] == "leaf");
            }
            "add" => return var(1).add(var(2)),
            "mul" => return var(1).mul(var(2)),
            "slice" => var(1).slice(int(2), int(3), int(4), int(5)),
            "select" => var(1).select(int(2), int(3)),
            "transpose" => var(1).transpose(int(2), int(3)),
            "permute" => var(1).permute(list(2)),
            "reshape" => var(1).reshape(list(2)),
            "expand" => var(1).expand(list(2)),
            "squeeze" => var(1).squeeze(int(2)),
            "unsqueeze" => var(1).unsqueeze(int(2)),
            "piece" => Ok(var(1).split(int(2) as usize, int(3))?.swap_remove(int(4) as usize)),
            "detach" => Ok(var(1).detach()),
            other => panic!("{other}"),
        }?;
        assert!(VIEWS.contains(&words[0]));
        if self.copies { made.copy() } else { Ok(made) }
    }

    fn write(&self, words: &[&str], vars: &[Tensor]) -> Result<()> {
        let var = |i: usize| &vars[words[i].parse::<usize>().unwrap()];
        let x = var(1);
        match words[0] {
            "add_" => x.add_(var(2)),
            "muls_" => x.mul_(words[2].parse::<f64>().unwrap()),
            "mulc_" => x.mul_(var(2)),
            "copy_" => x.copy_(var(2)),
            "zero_" => x.zero_(),
            other => panic!("{other}"),
        }
        .map(drop)
    }

    fn program(&self, text: &str) -> Result<Outcome> {
        let mut vars: Vec<Tensor> = vec![];
        let (mut leaves, mut refused, mut quiet) = (vec![], BTreeSet::new(), false);
        let mut from = vec![];
        for (at, statement) in text.split("; ").enumerate() {
            let words: Vec<&str> = statement.split(' ').collect();
            let _mode = std::mem::take(&mut quiet).then(no_grad);
            match words[0] {
                "ng" => quiet = true,
                "=" => {
                    if words[1] == "leaf" {
                        leaves.push(vars.len());
                    }
                    vars.push(self.make(&words[1..], &vars)?);
                }
                "backward" => from = words[1..].iter().map(|w| w.parse::<usize>().unwrap()).collect(),
                _ if self.skip.contains(&at) => {}
                _ => {
                    if let Err(e) = self.write(&words, &vars) {
                        assert!(e.to_string().contains("help: "), "{e}");
                        assert!(e.is_logical(), "{e}");
                        refused.insert(at);
                    }
                }
            }
        }
        let values = vars.iter().map(|t| t.detach().to_vec::<f64>()).collect::<Result<_>>()?;
        let mut loss: Option<Tensor> = None;
        for i in from {
            let part = vars[i].mul(&vars[i])?.sum(())?;
            loss = Some(loss.map_or(Ok(part.clone()), |l| l.add(&part))?);
        }
        let gradients = match loss.unwrap().backward() {
            Ok(()) => {
                let grads = leaves.iter().map(|i| vars[*i].grad().map(|g| g.to_vec::<f64>()).transpose());
                Some(grads.collect::<Result<_>>()?)
            }
            // What only depends on views made under `no_grad` (to PyTorch a graph that leads nowhere).
            Err(e) if e.to_string().contains("does not depend") => Some(vec![None; leaves.len()]),
            Err(e) => {
                assert!(e.to_string().contains("changed in place"), "{e}");
                None
            }
        };
        Ok(Outcome { refused, values, gradients })
    }
}

fn golden() -> impl Iterator<Item = (&'static str, &'static str)> {
    GOLDEN.lines().map(|line| line.split_once(" | ").unwrap())
}

#[test]
fn random_programs_on_local_tensors_agree_with_pytorch() {
    let enter = |values: Vec<f64>, shape: Vec<usize>, _| from_vec(values, shape, Device::Cpu);
    let run = Run { enter: &enter, copies: false, skip: BTreeSet::new() };
    let (mut programs, mut wrong) = (0, vec![]);
    for (at, (program, answers)) in golden().enumerate() {
        let have = match run.program(program) {
            Ok(have) => have,
            Err(e) => {
                wrong.push(format!("line {}: {program}\n  {e}", at + 1));
                continue;
            }
        };
        let mut texts: Vec<String> = have.refused.iter().map(|i| format!("!{i}")).collect();
        let sum = |v: &[f64]| v.iter().enumerate().map(|(i, x)| x * (i + 1) as f64).sum::<f64>() + 0.0;
        texts.extend(have.values.iter().map(|v| format!("{}", sum(v))));
        texts.push("backward".into());
        match &have.gradients {
            None => texts.push("!".into()),
            Some(all) => texts.extend(all.iter().map(|g| match g {
                Some(g) if g.iter().any(|x| *x != 0.0) => {
                    format!("[{}]", g.iter().map(|x| (x + 0.0).to_string()).collect::<Vec<_>>().join(","))
                }
                _ => "-".into(),
            })),
        }
        if texts.join(" ") != answers {
            wrong.push(format!("line {}: {program}\n  have {}\n  want {answers}", at + 1, texts.join(" ")));
        }
        programs += 1;
    }
    assert!(wrong.is_empty(), "{} of {programs}:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
    assert!(programs >= 2000);
}

/// Layouts of a tensor of that shape on a mesh of so many axes, by number.
fn layout(shape: &[usize], axes: usize, number: usize) -> NdSbp {
    use oflow::sbp::Sbp;
    let mut choices = vec![Sbp::Broadcast, Sbp::PARTIAL_SUM];
    choices.extend((0..shape.len()).map(Sbp::Split));
    let along = |axis: usize| choices[(number / (1 + axis * 5) + axis) % choices.len()];
    (0..axes).map(along).collect()
}

fn global_programs(dims: &[usize], every: usize) {
    let ranks = dims.iter().product();
    oflow::run_ranks(ranks, |_| {
        let mesh = Placement::new(Device::Cpu, &(0..ranks).collect::<Vec<_>>(), dims)?;
        let (mut refusals, mut writes) = (0, 0);
        for (at, (program, _)) in golden().enumerate().step_by(every) {
            let enter = |values: Vec<f64>, shape: Vec<usize>, var: usize| {
                let sbp = layout(&shape, mesh.axes(), at / every + 7 * var);
                distribute(&from_vec(values, shape, Device::Cpu)?, (&mesh, sbp))
            };
            let views = Run { enter: &enter, copies: false, skip: BTreeSet::new() }.program(program)?;
            let mut copies = Run { enter: &enter, copies: true, skip: views.refused.clone() }.program(program)?;
            assert!(copies.refused.is_empty(), "line {}: {program}", at + 1);
            copies.refused = views.refused.clone();
            assert_eq!(views, copies, "line {}: {program}", at + 1);
            refusals += views.refused.len();
            writes += program.split("; ").filter(|s| s.split(' ').next().is_some_and(|w| w.ends_with('_'))).count();
        }
        assert!(refusals > 0 && writes > refusals, "{refusals} of {writes} writes were refused");
        Ok(())
    })
    .unwrap();
}

#[test]
fn i15_random_programs_on_two_ranks_agree_with_copies_at_each_view() {
    global_programs(&[2], 1);
}

#[test]
fn i15_random_programs_on_a_mesh_agree_with_copies_at_each_view() {
    global_programs(&[2, 2], 4);
}
