//! Metrics against counts made by hand of the same rows, in every layout, of local tensors on each rank, and saved half way.

use oflow::metrics::{Accuracy, Auc, Average, ConfusionMatrix, Mean, Metric, Perplexity, RunningMean};
use oflow::prelude::*;
use oflow::run_ranks;
use oflow::state::{LoadState, SaveState, Stateful};
use oflow::testing::Random;

const CLASSES: usize = 5;

/// Rows of scores with ties, and targets of which some are -1.
struct Rows {
    scores: Vec<f32>,
    targets: Vec<i64>,
}

fn rows(n: usize, seed: u64) -> Rows {
    let mut random = Random::new(seed);
    Rows {
        scores: (0..n * CLASSES).map(|_| random.below(7) as f32 / 8.0).collect(),
        targets: (0..n).map(|_| random.below(CLASSES + 1) as i64 - 1).collect(),
    }
}

impl Rows {
    fn counted(&self) -> impl Iterator<Item = (&[f32], usize)> {
        let rows = self.scores.chunks(CLASSES).zip(&self.targets);
        rows.filter(|(_, t)| **t >= 0).map(|(s, t)| (s, *t as usize))
    }
    /// Classes from the highest score to the lowest, the lower class first among equal ones.
    fn ranking(scores: &[f32]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        order
    }
    fn top_k(&self, k: usize) -> f64 {
        let right = self.counted().filter(|(s, t)| Rows::ranking(s)[..k].contains(t)).count();
        right as f64 / self.counted().count() as f64
    }
    fn confusion(&self) -> Vec<Vec<u64>> {
        let mut m = vec![vec![0; CLASSES]; CLASSES];
        self.counted().for_each(|(s, t)| m[t][Rows::ranking(s)[0]] += 1);
        m
    }
    fn perplexity(&self) -> f64 {
        let nll = |(s, t): (&[f32], usize)| {
            let sum: f64 = s.iter().map(|x| f64::from(*x).exp()).sum();
            sum.ln() - f64::from(s[t])
        };
        (self.counted().map(nll).sum::<f64>() / self.counted().count() as f64).exp()
    }
    /// The score of class 0 for the target 0: all pairs of a positive and a negative row.
    fn auc(&self) -> f64 {
        let all: Vec<(f32, bool)> = self.counted().map(|(s, t)| (s[0], t == 0)).collect();
        let (mut good, mut pairs) = (0.0, 0.0);
        for (p, _) in all.iter().filter(|r| r.1) {
            for (n, _) in all.iter().filter(|r| !r.1) {
                good += if p > n {
                    1.0
                } else if p == n {
                    0.5
                } else {
                    0.0
                };
                pairs += 1.0;
            }
        }
        good / pairs
    }
}

/// All metrics that take rows.
struct All {
    top: Vec<Accuracy>,
    matrix: ConfusionMatrix,
    perplexity: Perplexity,
    auc: Auc,
    binned: Auc,
    mean: Mean,
}

impl All {
    fn new() -> Result<All> {
        Ok(All {
            top: (1..=CLASSES).map(|k| Accuracy::top(k).ignoring(-1)).collect(),
            matrix: ConfusionMatrix::new(CLASSES)?.ignoring(-1),
            perplexity: Perplexity::new(Some(-1)),
            auc: Auc::new(),
            binned: Auc::binned(8)?,
            mean: Mean::new(),
        })
    }
    fn each(&mut self, mut f: impl FnMut(&mut dyn Metric) -> Result<()>) -> Result<()> {
        self.top.iter_mut().try_for_each(|m| f(m))?;
        let rest: [&mut dyn Metric; 5] =
            [&mut self.matrix, &mut self.perplexity, &mut self.auc, &mut self.binned, &mut self.mean];
        rest.into_iter().try_for_each(f)
    }
    /// Takes rows in the layout that `make` gives tensors.
    fn update(&mut self, r: &Rows, make: &dyn Fn(Tensor) -> Result<Tensor>) -> Result<()> {
        let n = r.targets.len();
        let scores = make(from_vec(r.scores.clone(), [n, CLASSES], Device::Cpu)?)?;
        let targets = make(from_vec(r.targets.clone(), [n], Device::Cpu)?)?;
        self.top.iter_mut().try_for_each(|m| m.update(&scores, &targets))?;
        self.matrix.update(&scores, &targets)?;
        self.perplexity.update(&scores, &targets)?;
        self.mean.update(&scores)?;
        let (first, is_first): (Vec<f32>, Vec<i64>) = r.counted().map(|(s, t)| (s[0], i64::from(t == 0))).unzip();
        let n = first.len();
        let (first, is_first) = (from_vec(first, [n], Device::Cpu)?, from_vec(is_first, [n], Device::Cpu)?);
        let (first, is_first) = (make(first)?, make(is_first)?);
        self.auc.update(&first, &is_first)?;
        self.binned.update(&first, &is_first)
    }
    fn check(&self, r: &Rows) {
        for (k, m) in self.top.iter().enumerate() {
            assert_eq!(m.value(), r.top_k(k + 1), "top {}", k + 1);
        }
        assert_eq!(self.matrix.counts(), r.confusion());
        assert_eq!(self.matrix.accuracy(), r.top_k(1));
        assert!((self.perplexity.value() / r.perplexity() - 1.0).abs() < 1e-9);
        assert!((self.auc.value() - r.auc()).abs() < 1e-12);
        // Scores are eighths: intervals of an eighth tell all of them apart.
        assert!((self.binned.value() - r.auc()).abs() < 1e-12);
        let mean = r.scores.iter().map(|s| f64::from(*s)).sum::<f64>() / r.scores.len() as f64;
        assert!((self.mean.value() - mean).abs() < 1e-12);
    }
}

/// Batches of different sizes, and all of them as one.
fn batches() -> (Vec<Rows>, Rows) {
    let all: Vec<Rows> = [7, 12, 1, 5].iter().enumerate().map(|(i, n)| rows(*n, i as u64 + 1)).collect();
    let joined = Rows {
        scores: all.iter().flat_map(|r| r.scores.clone()).collect(),
        targets: all.iter().flat_map(|r| r.targets.clone()).collect(),
    };
    (all, joined)
}

#[test]
fn global_tensors_count_alike_in_every_layout() {
    let (all, joined) = batches();
    run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
        let some = Placement::new(Device::Cpu, &[2, 1], &[2])?;
        for (placement, sbp) in
            [(&mesh, sbp![S(0), B]), (&mesh, sbp![B, B]), (&some, sbp![S(0)]), (&mesh, sbp![S(0), S(0)])]
        {
            let mut metrics = All::new()?;
            let make = |t: Tensor| distribute(&t, (placement, sbp.clone()));
            all.iter().try_for_each(|r| metrics.update(r, &make))?;
            metrics.check(&joined);
            // There is nothing to add up.
            metrics.each(|m| m.sync())?;
            metrics.check(&joined);
        }
        // Classes split too, targets where they were.
        let mut metrics = All::new()?;
        let make = |t: Tensor| distribute(&t, (&mesh, if t.ndim() == 2 { sbp![S(0), S(1)] } else { sbp![B, S(0)] }));
        all.iter().try_for_each(|r| metrics.update(r, &make))?;
        metrics.check(&joined);
        Ok(())
    })
    .unwrap();
}

#[test]
fn local_tensors_are_added_up_over_ranks_once() {
    let (all, joined) = batches();
    run_ranks(4, |w| {
        let mut metrics = All::new()?;
        let own = &all[w.rank()];
        metrics.update(own, &Ok)?;
        // What this rank knows is of this rank; a checkpoint would lose the rest.
        assert_eq!(metrics.matrix.counts(), own.confusion());
        metrics.each(|m| {
            let e = m.save_state(&mut SaveState::new()).unwrap_err();
            assert!(e.message().contains("sums of this rank alone"), "{e}");
            Ok(())
        })?;
        for _ in 0..2 {
            metrics.each(|m| m.sync())?;
            metrics.check(&joined);
        }
        // Later ones come on top: each row twice leaves all of them as they are.
        metrics.update(own, &Ok)?;
        metrics.each(|m| m.sync())?;
        let twice = Rows {
            scores: [&joined.scores[..], &joined.scores].concat(),
            targets: [&joined.targets[..], &joined.targets].concat(),
        };
        metrics.check(&twice);
        metrics.each(|m| {
            m.reset();
            assert!(m.value().is_nan());
            Ok(())
        })
    })
    .unwrap();
}

fn reloaded<M: Stateful>(saved: &M, into: &mut M) -> Result<()> {
    let mut to = SaveState::new();
    saved.save_state(&mut to)?;
    let (_, values) = to.into_parts();
    // As a checkpoint has them: text.
    let values = serde_json::from_str(&serde_json::to_string(&values).unwrap()).unwrap();
    into.load_state(&mut LoadState::new([], &values))
}

#[test]
fn metrics_go_on_from_a_checkpoint_on_other_ranks() {
    let (all, joined) = batches();
    let saved = run_ranks(2, |w| {
        let mut metrics = All::new()?;
        metrics.update(&all[w.rank()], &Ok)?;
        metrics.each(|m| m.sync())?;
        Ok(metrics)
    });
    let first = saved.unwrap().remove(0);
    run_ranks(1, |_| {
        let mut metrics = All::new()?;
        first.top.iter().zip(&mut metrics.top).try_for_each(|(a, b)| reloaded(a, b))?;
        reloaded(&first.matrix, &mut metrics.matrix)?;
        reloaded(&first.perplexity, &mut metrics.perplexity)?;
        reloaded(&first.auc, &mut metrics.auc)?;
        reloaded(&first.binned, &mut metrics.binned)?;
        reloaded(&first.mean, &mut metrics.mean)?;
        all[2..].iter().try_for_each(|r| metrics.update(r, &Ok))?;
        metrics.check(&joined);
        let e = reloaded(&first.matrix, &mut ConfusionMatrix::new(3)?).unwrap_err();
        assert!(e.message().contains("the saved metric has 25 sums, this one 9"), "{e}");
        Ok(())
    })
    .unwrap();
}

fn labels(of: &[i64]) -> Tensor {
    from_vec(of.to_vec(), [of.len()], Device::Cpu).unwrap()
}

#[test]
fn values_are_those_of_the_examples_of_scikit_learn() {
    // precision_recall_fscore: y_true, y_pred of the user guide.
    let mut m = ConfusionMatrix::new(3).unwrap();
    m.update(&labels(&[0, 2, 1, 0, 0, 1]), &labels(&[0, 1, 2, 0, 1, 2])).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} instead of {b}");
    close(m.precision(Average::Macro), 2.0 / 9.0);
    close(m.precision(Average::Micro), 1.0 / 3.0);
    close(m.precision(Average::Weighted), 2.0 / 9.0);
    close(m.recall(Average::Macro), 1.0 / 3.0);
    close(m.recall(Average::Micro), 1.0 / 3.0);
    close(m.f1(Average::Macro), 0.8 / 3.0);
    close(m.f1(Average::Micro), 1.0 / 3.0);
    close(m.f1(Average::Weighted), 0.8 / 3.0);
    // confusion_matrix.
    let mut m = ConfusionMatrix::new(3).unwrap();
    m.update(&labels(&[0, 0, 2, 2, 0, 2]), &labels(&[2, 0, 2, 2, 0, 1])).unwrap();
    assert_eq!(m.counts(), [[2, 0, 0], [0, 0, 1], [1, 0, 2]]);
    // A class that nothing is predicted as has the precision 0 (`zero_division=0`), and classes have other numbers of rows.
    close(m.precision(Average::Macro), (2.0 / 3.0 + 0.0 + 2.0 / 3.0) / 3.0);
    close(m.recall(Average::Weighted), (2.0 * 1.0 + 0.0 + 3.0 * (2.0 / 3.0)) / 6.0);
    let f1 = [0.8, 0.0, 2.0 / 3.0];
    close(m.f1(Average::Macro), f1.iter().sum::<f64>() / 3.0);
    assert!(m.by_class().iter().zip(f1).all(|(s, f)| (s.f1 - f).abs() < 1e-12));
    assert_eq!(m.by_class().iter().map(|s| s.support).collect::<Vec<_>>(), [2.0, 1.0, 3.0]);
    // top_k_accuracy_score.
    let scores = vec![0.5f32, 0.2, 0.2, 0.3, 0.4, 0.2, 0.2, 0.4, 0.3, 0.7, 0.2, 0.1];
    let mut top = Accuracy::top(2);
    top.update(&from_vec(scores, [4, 3], Device::Cpu).unwrap(), &labels(&[0, 1, 2, 2])).unwrap();
    assert_eq!(top.value(), 0.75);
    // roc_auc_score, and all scores alike.
    for (scores, want) in [
        (vec![0.1f32, 0.4, 0.35, 0.8], 0.75),
        (vec![0.5; 4], 0.5),
        (vec![f32::NEG_INFINITY, 0.0, -0.0, f32::INFINITY], 0.875),
    ] {
        let mut auc = Auc::new();
        auc.update(&from_vec(scores, [4], Device::Cpu).unwrap(), &labels(&[0, 0, 1, 1])).unwrap();
        assert_eq!(auc.value(), want);
    }
}

#[test]
fn wrong_rows_are_refused_and_leave_the_metric_as_it_was() {
    let scores = |v: Vec<f32>, shape: &[usize]| from_vec(v, shape, Device::Cpu).unwrap();
    let mut m = ConfusionMatrix::new(3).unwrap();
    m.update(&labels(&[0, 1]), &labels(&[0, 2])).unwrap();
    let before = m.clone();
    let e = m.update(&labels(&[0, 3, -1]), &labels(&[0, 1, 1])).unwrap_err();
    assert!(e.message().contains("2 rows have a target or a prediction that is none of the 3 classes"), "{e}");
    assert!(m.update(&labels(&[0]), &labels(&[0, 1])).is_err());
    assert!(
        m.update(&scores(vec![0.0; 2], &[2]), &labels(&[0, 1])).unwrap_err().message().contains("numbers of classes")
    );
    assert_eq!(m, before);
    let mut a = Accuracy::new();
    let e = a.update(&scores(vec![0.0; 4], &[2, 2]), &labels(&[0, 2])).unwrap_err();
    assert!(e.message().contains("1 targets are none of the 2 classes") && e.site().is_some(), "{e}");
    assert!(a.update(&scores(vec![0.0; 4], &[2, 2]), &labels(&[0, 2, 1])).is_err() && a.value().is_nan());
    let mut auc = Auc::new();
    assert!(auc.update(&scores(vec![f32::NAN], &[1]), &labels(&[0])).is_err());
    assert!(auc.update(&scores(vec![0.0], &[1]), &labels(&[2])).is_err());
    assert!(Auc::binned(4).unwrap().update(&scores(vec![1.5], &[1]), &labels(&[1])).is_err());
    assert!(Auc::binned(0).is_err() && ConfusionMatrix::new(0).is_err() && ConfusionMatrix::new(1 << 20).is_err());
    // NaN is the highest score, and no right one.
    let nan = f32::NAN;
    let mut a = Accuracy::new();
    a.update(&scores(vec![nan, 1.0, 0.0, nan, 1.0, 0.0], &[3, 2]), &labels(&[1, 1, 0])).unwrap();
    assert_eq!(a.value(), 1.0 / 3.0);
    let mut all = Accuracy::top(2);
    all.update(&scores(vec![nan, 1.0], &[1, 2]), &labels(&[0])).unwrap();
    assert_eq!(all.value(), 0.0);
    // No rows.
    a.update(&scores(vec![], &[0, 2]), &labels(&[])).unwrap();
    m.update(&labels(&[]), &labels(&[])).unwrap();
    assert_eq!((a.value(), m), (1.0 / 3.0, before));
}

#[test]
fn a_running_mean_forgets_and_is_added_up_by_update() {
    run_ranks(2, |w| {
        let mut m = RunningMean::new(3);
        for step in 0..5 {
            m.add(f64::from(step) + 10.0 * w.rank() as f64, 1.0);
        }
        assert_eq!(m.value(), 3.0 + 10.0 * w.rank() as f64);
        m.sync()?;
        assert_eq!(m.value(), 8.0);
        let elements = from_vec(vec![1f32, 3.0], [2], Device::Cpu)?;
        m.update(&distribute(&elements, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?)?;
        // Steps 3 and 4 of both ranks, and two elements.
        assert_eq!(m.value(), (3.0 + 13.0 + 4.0 + 14.0 + 1.0 + 3.0) / 6.0);
        let mut other = RunningMean::new(2);
        reloaded(&m, &mut other)?;
        assert_eq!(other.value(), (4.0 + 14.0 + 1.0 + 3.0) / 4.0);
        Ok(())
    })
    .unwrap();
}
