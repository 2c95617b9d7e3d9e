//! The node that the run of a graph has come to, in the recorder's memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::ring::{NODE_CALLS, Ring, node_word};
use oflow_base::CallSite;

/// The nodes of a graph, as a recorder tells of them.
#[derive(Default)]
pub struct GraphNodes {
    /// Calls of the nodes with their lines, each once; of many the first.
    calls: Vec<(String, CallSite)>,
    /// Per node: which of the calls it makes.
    of: Vec<usize>,
    /// The ring that has the calls, and the number of the first one there.
    ring: Weak<Ring>,
    first: u64,
    /// Per node: the word that a run writes when it comes to it.
    words: Vec<u64>,
}

impl GraphNodes {
    /// Makes the nodes of a graph: of each its call in short form and its line.
    pub fn new(nodes: impl IntoIterator<Item = (String, CallSite)>) -> GraphNodes {
        let (mut known, mut all) = (BTreeMap::new(), GraphNodes::default());
        for call in nodes {
            let next = known.len();
            let n = *known.entry(call).or_insert(next);
            all.of.push(n);
        }
        let mut calls: Vec<_> = known.into_iter().collect();
        calls.sort_by_key(|(_, n)| *n);
        // More have no room beside each other: their nodes are told by their number alone.
        all.calls = calls.into_iter().map(|(call, _)| call).take(NODE_CALLS).collect();
        all
    }

    pub(super) fn begin(&mut self, ring: Option<&Arc<Ring>>, written: &mut u64, graph: u64) -> GraphRun<'_> {
        let Some(ring) = ring else { return GraphRun::default() };
        let there = self.ring.as_ptr() == Arc::as_ptr(ring) && self.first + NODE_CALLS as u64 > *written;
        if !there {
            self.ring = Arc::downgrade(ring);
            self.first = *written + 1;
            for (call, site) in &self.calls {
                *written += 1;
                ring.write_node_call(*written, call, site.file, site.line);
            }
            let call = |n: usize| if n < self.calls.len() { self.first + n as u64 } else { 0 };
            self.words = self.of.iter().enumerate().map(|(node, n)| node_word(node, call(*n))).collect();
        }
        ring.begin_run(graph);
        GraphRun(Some((ring.clone(), &self.words)))
    }
}

/// A run of a graph, until it is dropped.
#[derive(Default)]
pub struct GraphRun<'a>(Option<(Arc<Ring>, &'a [u64])>);

impl GraphRun<'_> {
    /// The run has come to a node. The cost is one store.
    #[inline]
    pub fn come_to(&self, node: usize) {
        if let Some((ring, words)) = &self.0
            && let Some(word) = words.get(node)
        {
            ring.come_to(*word);
        }
    }
}

impl GraphRun<'_> {
    /// The run begins another iteration of a loop, whose nodes it comes to once more.
    #[inline]
    pub fn turn(&self) {
        if let Some((ring, _)) = &self.0 {
            ring.turn();
        }
    }
}

impl Drop for GraphRun<'_> {
    fn drop(&mut self) {
        if let Some((ring, _)) = &self.0 {
            ring.come_to(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flight, Recorder};

    fn nodes(calls: impl IntoIterator<Item = (String, u32)>) -> GraphNodes {
        GraphNodes::new(calls.into_iter().map(|(call, line)| (call, CallSite::at("train.rs", line))))
    }

    #[test]
    fn a_run_that_never_ends_is_read_from_the_file_of_its_rank() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(1, 2, Some(folder.path()));
        let read = || Flight::read(&folder.path().join(Flight::ring_name(1))).unwrap().node;
        let tag = recorder.next("graph", 7, CallSite::at("train.rs", 50), None);
        let call = |n: u32| (format!("relu(f32[{n}] [B])"), n);
        let mut layers = nodes((0..30).map(|n| call(n % 3)));
        assert_eq!(layers.calls.len(), 3);
        let run = recorder.begin_run(&mut layers, tag.ordinal);
        assert_eq!(read(), None);
        run.come_to(4);
        let node = read().unwrap();
        assert_eq!((node.graph, node.number, node.line, node.op.as_str()), (1, 5, 1, "relu"));
        assert_eq!(node.describe(&node.call), "relu(f32[1] [B]), node 5 of graph #1 (train.rs:1)");
        assert_eq!(recorder.node(), Some(node));
        // Records do not overwrite it.
        for n in 0..5000 {
            recorder.next_described("add", n, CallSite::at("b.rs", 1), &|| format!("add({n})"));
        }
        assert_eq!(read().unwrap().call, "relu(f32[1] [B])");
        let before = recorder.steps();
        run.come_to(5);
        assert_ne!(recorder.steps(), before);
        // An iteration is a step although the run stops at the same node in each.
        let before = recorder.steps();
        run.turn();
        run.come_to(5);
        assert_ne!(recorder.steps(), before);
        drop(run);
        assert_eq!((read(), recorder.node()), (None, None));
        // The next run is told from this one although it stops at the same node.
        let mut one = nodes([call(1)]);
        let mut at = || {
            let run = recorder.begin_run(&mut one, 0);
            run.come_to(0);
            recorder.steps()
        };
        assert_ne!(at(), at());
    }

    #[test]
    fn calls_that_fall_out_are_written_again_and_too_many_are_told_by_number() {
        let recorder = Recorder::new(0, 1, None);
        let mut small = nodes([("add(old)".to_string(), 3)]);
        let told = |nodes: &mut GraphNodes, node: usize| {
            let run = recorder.begin_run(nodes, 0);
            run.come_to(node);
            recorder.node().unwrap()
        };
        assert_eq!(told(&mut small, 0).call, "add(old)");
        let mut large = nodes((0..NODE_CALLS as u32 + 5).map(|n| (format!("exp({n})"), n)));
        assert_eq!(told(&mut large, 0).call, "exp(0)");
        assert_eq!(told(&mut large, NODE_CALLS - 1).call, format!("exp({})", NODE_CALLS - 1));
        let beyond = told(&mut large, NODE_CALLS);
        assert_eq!(beyond.describe(&beyond.call), format!("node {} of a graph", NODE_CALLS + 1));
        assert_eq!(told(&mut small, 0).call, "add(old)");
        // One of its calls is gone now, and all are written again.
        assert_eq!(told(&mut large, 0).call, "exp(0)");
        // Another recorder has none of them.
        let other = Recorder::new(0, 1, None);
        let run = other.begin_run(&mut small, 0);
        run.come_to(0);
        assert_eq!(other.node().unwrap().call, "add(old)");
        // What is long is cut: the call at its end, the file at its beginning.
        let long = CallSite::at(
            "/a/very/long/path/a/very/long/path/a/very/long/path/a/very/long/path/a/very/long/path/to/train.rs",
            7,
        );
        let node = told(&mut GraphNodes::new([("é".repeat(500), long)]), 0);
        assert!(node.call.chars().all(|c| c == 'é') && node.call.len() > 100, "{node:?}");
        assert!(node.file.ends_with("/path/to/train.rs") && node.line == 7, "{node:?}");
    }
}
