//! Random graphs against a brute force: the engine's gradients, its order, and when leaves complete.

use super::*;
use oflow_base::Random;
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq)]
enum To {
    Nowhere,
    Leaf(usize),
    Node(usize, usize),
}

/// Edge `i` of a node sends the sum over outputs `o` of `weights[i][o]` times their gradients, or nothing.
struct Toy {
    edges: Vec<To>,
    weights: Vec<Option<Vec<i64>>>,
    outputs: usize,
}

struct Graph {
    nodes: Vec<Toy>,
    leaves: usize,
    /// Hooks of leaves multiply by this.
    factor: Vec<i64>,
    bytes: Vec<usize>,
    /// What happened, in order.
    ran: Vec<usize>,
    sent: Vec<usize>,
    stored: Vec<(usize, i64, usize)>,
    together: Vec<Vec<usize>>,
}

impl BackwardGraph for Graph {
    type Value = i64;
    type Node = usize;
    type Leaf = usize;
    fn ordinal(&self, node: &usize) -> u64 {
        *node as u64 * 3 + 1
    }
    fn outputs(&self, node: &usize) -> usize {
        self.nodes[*node].outputs
    }
    fn edges(&self, node: &usize) -> usize {
        self.nodes[*node].edges.len()
    }
    fn edge(&self, node: &usize, i: usize) -> EdgeTo<usize, usize> {
        link(self.nodes[*node].edges[i])
    }
    fn leaf_id(&self, leaf: &usize) -> usize {
        *leaf
    }
    fn add(&mut self, _: Option<&usize>, a: i64, b: i64) -> Result<i64> {
        Ok(a.wrapping_add(b))
    }
    fn hook_node(&mut self, _: &usize, grads: &mut Grads<i64>) -> Result<()> {
        grads.iter_mut().flatten().for_each(|g| *g = g.wrapping_mul(3));
        Ok(())
    }
    fn hook_leaf(&mut self, leaf: &usize, grad: i64) -> Result<i64> {
        Ok(grad.wrapping_mul(self.factor[*leaf]))
    }
    fn rule(&mut self, node: &usize, grads: Grads<i64>) -> Result<Vec<Option<i64>>> {
        self.ran.push(*node);
        let toy = &self.nodes[*node];
        let mut found: Vec<Option<i64>> = toy.weights.iter().map(|w| Some(along(w.as_ref()?, &grads))).collect();
        // A rule may leave out what comes last.
        while found.last() == Some(&None) {
            found.pop();
        }
        Ok(found)
    }
    fn to_leaf_layout(&mut self, leaf: &usize, grad: i64) -> Result<LeafGrad<i64>> {
        self.sent.push(*leaf);
        Ok(match self.bytes[*leaf] {
            0 => LeafGrad::Ready(grad),
            bytes => LeafGrad::NeedsBoxing(grad, bytes),
        })
    }
    fn box_one(&mut self, leaf: &usize, grad: i64) -> Result<i64> {
        assert!(self.bytes[*leaf] > SMALL);
        Ok(grad)
    }
    fn box_together(&mut self, all: &[(usize, i64)]) -> Result<Vec<i64>> {
        self.together.push(all.iter().map(|(leaf, _)| *leaf).collect());
        Ok(all.iter().map(|(_, g)| *g).collect())
    }
    fn store(&mut self, leaf: &usize, grad: i64) -> Result<()> {
        self.stored.push((*leaf, grad, self.ran.len()));
        Ok(())
    }
}

fn link(to: To) -> EdgeTo<usize, usize> {
    match to {
        To::Nowhere => EdgeTo::Nowhere,
        To::Leaf(leaf) => EdgeTo::Leaf(leaf),
        To::Node(node, output) => EdgeTo::Node(node, output),
    }
}

fn along(weights: &[i64], grads: &[Option<i64>]) -> i64 {
    weights.iter().zip(grads).fold(0, |sum, (w, g)| sum.wrapping_add(w.wrapping_mul(g.unwrap_or(0))))
}

fn random_graph(r: &mut Random) -> (Graph, Vec<(To, i64)>) {
    let (n, leaves) = (1 + r.below(12), 1 + r.below(5));
    let mut nodes: Vec<Toy> = vec![];
    let to = |r: &mut Random, nodes: &[Toy]| match r.below(8) {
        0 => To::Nowhere,
        1..=2 => To::Leaf(r.below(leaves)),
        _ if nodes.is_empty() => To::Leaf(r.below(leaves)),
        _ => {
            let node = r.below(nodes.len());
            To::Node(node, r.below(nodes[node].outputs))
        }
    };
    for _ in 0..n {
        let outputs = 1 + r.below(3);
        let edges: Vec<To> = (0..1 + r.below(4)).map(|_| to(r, &nodes)).collect();
        let weights = edges.iter().map(|e| {
            let gives = *e != To::Nowhere && r.below(4) > 0;
            gives.then(|| (0..outputs).map(|_| r.below(7) as i64 - 3).collect())
        });
        let weights = weights.collect();
        nodes.push(Toy { edges, weights, outputs });
    }
    let from = (0..1 + r.below(3)).map(|_| (to(r, &nodes), 1 + r.below(5) as i64)).collect();
    let graph = Graph {
        nodes,
        leaves,
        factor: (0..leaves).map(|_| 1 + r.below(3) as i64).collect(),
        bytes: (0..leaves).map(|_| [0, 8, SMALL, SMALL + 1][r.below(4)]).collect(),
        ran: vec![],
        sent: vec![],
        stored: vec![],
        together: vec![],
    };
    (graph, from)
}

/// The brute force: a gradient exists where some chain of edges that give something leads; its value is the sum over all
/// nodes above, found by asking every node for the gradients of its outputs.
fn output_grad(g: &Graph, from: &[(To, i64)], node: usize, output: usize) -> Option<i64> {
    let mut sum: Option<i64> = None;
    let mut add = |v: i64| sum = Some(sum.unwrap_or(0).wrapping_add(v));
    from.iter().filter(|(to, _)| *to == To::Node(node, output)).for_each(|(_, v)| add(*v));
    for above in node + 1..g.nodes.len() {
        given(g, from, above, To::Node(node, output)).into_iter().for_each(&mut add);
    }
    sum
}

/// What node `above` gives along its edges to `to`.
fn given(g: &Graph, from: &[(To, i64)], above: usize, to: To) -> Vec<i64> {
    let toy = &g.nodes[above];
    if !toy.edges.iter().zip(&toy.weights).any(|(e, w)| *e == to && w.is_some()) {
        return vec![];
    }
    let grads: Vec<Option<i64>> =
        (0..toy.outputs).map(|o| output_grad(g, from, above, o).map(|v| v.wrapping_mul(3))).collect();
    if grads.iter().all(|g| g.is_none()) {
        return vec![];
    }
    let edges = toy.edges.iter().zip(&toy.weights).filter(|(e, _)| **e == to);
    edges.filter_map(|(_, w)| Some(along(w.as_ref()?, &grads))).collect()
}

fn reached(g: &Graph, from: &[(To, i64)]) -> BTreeSet<usize> {
    let mut stack: Vec<To> = from.iter().map(|(to, _)| *to).collect();
    let mut seen = BTreeSet::new();
    while let Some(to) = stack.pop() {
        if let To::Node(node, _) = to
            && seen.insert(node)
        {
            stack.extend(&g.nodes[node].edges);
        }
    }
    seen
}

#[test]
fn i9_random_graphs_agree_with_a_brute_force() {
    for seed in 0..4000 {
        let mut r = Random::new(seed);
        let (mut g, from) = random_graph(&mut r);
        run(&mut g, from.iter().map(|(to, v)| (link(*to), *v)).collect(), None).unwrap();
        // Falling order, each node once, and those only that a gradient reaches.
        assert!(g.ran.windows(2).all(|w| w[0] > w[1]), "seed {seed}: {:?}", g.ran);
        let reaches = |node: &usize| (0..g.nodes[*node].outputs).any(|o| output_grad(&g, &from, *node, o).is_some());
        let want: Vec<usize> = (0..g.nodes.len()).rev().filter(reaches).collect();
        assert_eq!(g.ran, want, "seed {seed}");
        let all = reached(&g, &from);
        for leaf in 0..g.leaves {
            let mut parts: Vec<i64> = from.iter().filter(|(to, _)| *to == To::Leaf(leaf)).map(|(_, v)| *v).collect();
            parts.extend((0..g.nodes.len()).flat_map(|above| given(&g, &from, above, To::Leaf(leaf))));
            let want = parts.iter().copied().reduce(i64::wrapping_add).map(|v| v.wrapping_mul(g.factor[leaf]));
            let have: Vec<_> = g.stored.iter().filter(|(l, ..)| *l == leaf).collect();
            assert_eq!(
                have.iter().map(|(_, v, _)| *v).collect::<Vec<_>>(),
                Vec::from_iter(want),
                "seed {seed}: {leaf}"
            );
            // A gradient that is not boxed with others is stored when the last edge to its leaf is settled: after the
            // oldest reached node with an edge to it, and before any older one runs.
            if let (Some((_, _, at)), true) = (have.first(), g.bytes[leaf] == 0 || g.bytes[leaf] > SMALL) {
                let oldest = all.iter().find(|node| g.nodes[**node].edges.contains(&To::Leaf(leaf)));
                let before = g.ran.iter().filter(|node| oldest.is_some_and(|o| *node >= o)).count();
                assert_eq!(*at, if oldest.is_some() { before } else { 0 }, "seed {seed}: {leaf}");
            }
        }
        // What is small went together, in the order of completion.
        let small = |leaf: &usize| (1..=SMALL).contains(&g.bytes[*leaf]);
        let went: Vec<usize> = g.together.iter().flatten().copied().collect();
        assert_eq!(went, g.sent.iter().copied().filter(small).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn chosen_gradients_are_those_of_the_whole_run_and_nothing_else_is_run() {
    for seed in 0..4000 {
        let start = |from: &[(To, i64)]| from.iter().map(|(to, v)| (link(*to), *v)).collect();
        let (mut whole, from) = random_graph(&mut Random::new(seed));
        run(&mut whole, start(&from), None).unwrap();
        let (mut g, _) = random_graph(&mut Random::new(seed));
        let mut r = Random::new(seed + 4000);
        let leaves: BTreeSet<usize> = (0..g.leaves).filter(|_| r.below(2) == 0).collect();
        let nodes: BTreeSet<usize> = (0..g.nodes.len()).filter(|_| r.below(6) == 0).collect();
        let ordinals = nodes.iter().map(|n| g.ordinal(n)).collect();
        run(&mut g, start(&from), Some(&Chosen { leaves: leaves.clone(), nodes: ordinals })).unwrap();
        let values =
            |g: &Graph| -> BTreeSet<(usize, i64)> { g.stored.iter().map(|(leaf, v, _)| (*leaf, *v)).collect() };
        let want = values(&whole).into_iter().filter(|(leaf, _)| leaves.contains(leaf)).collect();
        assert_eq!(values(&g), want, "seed {seed}");
        // A rule runs where some chain of edges leads to what is chosen.
        let leads = |node: &usize| {
            let edges = g.nodes[*node].edges.iter();
            let below: Vec<(To, i64)> = edges.map(|e| (*e, 1)).collect();
            let to_leaf = |n: usize| g.nodes[n].edges.iter().any(|e| matches!(e, To::Leaf(l) if leaves.contains(l)));
            to_leaf(*node) || reached(&g, &below).into_iter().any(|n| nodes.contains(&n) || to_leaf(n))
        };
        let want: Vec<usize> = whole.ran.iter().copied().filter(leads).collect();
        assert_eq!(g.ran, want, "seed {seed}");
    }
}

#[test]
fn buckets_are_flushed_when_they_are_full() {
    let n = 2 * BUCKET / SMALL + 3;
    let edges: Vec<To> = (0..n).map(To::Leaf).collect();
    let mut g = Graph {
        nodes: vec![Toy { weights: vec![Some(vec![1]); n], edges, outputs: 1 }],
        leaves: n,
        factor: vec![1; n],
        bytes: vec![SMALL; n],
        ran: vec![],
        sent: vec![],
        stored: vec![],
        together: vec![],
    };
    run(&mut g, vec![(EdgeTo::Node(0, 0), 1)], None).unwrap();
    assert_eq!(g.together.iter().map(Vec::len).collect::<Vec<_>>(), [BUCKET / SMALL, BUCKET / SMALL, 3]);
}
