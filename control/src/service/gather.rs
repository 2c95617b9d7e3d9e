//! Hosts that join: which may take part, the part of each when a start begins, and the messages to waiting hosts.

use super::*;

/// Most hosts that wait for a place.
const MAX_SPARES: usize = 64;
/// Times after which waiting hosts are told which hosts are missing: first, and then again.
const SAY_AFTER: Duration = Duration::from_secs(10);
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// Hosts that are waited for.
pub(super) struct Gathering {
    since: Instant,
    /// When the last one came.
    last: Instant,
    /// Next time to report the missing hosts.
    say: Instant,
}

impl Gathering {
    pub(super) fn starting(now: Instant) -> Phase {
        Phase::Gathering(Gathering { since: now, last: now, say: now + SAY_AFTER })
    }
}

impl RootState {
    /// A host asks to take part.
    pub fn arrive(&mut self, id: u64, hello: pb::NodeHello, now: Instant) -> Result<(), Status> {
        // It has not heard of its first attempt, which must not keep its place. Who has a part keeps it: a hello that somebody
        // has recorded and says again takes nothing away.
        let same = |n: &Node| n.part.is_none() && hello.instance != 0 && n.hello.instance == hello.instance;
        let again = |(id, n): (&u64, &Node)| (*id != OWN && same(n)).then_some(*id);
        if let Some(before) = self.nodes.iter().find_map(again) {
            self.lost(before, "it has connected a second time", now);
        }
        self.check(&hello)?;
        self.nodes.insert(id, Node { hello, heard: now, silent: false, part: None });
        match &mut self.phase {
            Phase::Gathering(gathering) => gathering.last = now,
            Phase::Running => self.send(id, Down::Note(self.no_place())),
            Phase::Over => {}
        }
        self.begin_if_all_are_there(now);
        Ok(())
    }

    fn check(&self, hello: &pb::NodeHello) -> Result<(), Status> {
        let own = &self.nodes[&OWN].hello;
        let no = |text: String| Err(Status::failed_precondition(text));
        let (here, there) = (&own.host, &hello.host);
        if own.version != hello.version {
            return no(format!("node 0 ({here}) runs oflow {}, {there} runs oflow {}", own.version, hello.version));
        }
        if own.program != hello.program && own.program != 0 && hello.program != 0 {
            return no(format!(
                "node 0 ({here}) has program {:016x}, {there} has {:016x}: they are different builds of the program",
                own.program, hello.program
            ));
        }
        let range = |h: &pb::NodeHello| describe(h.min_nodes as usize..=h.max_nodes as usize);
        if (own.min_nodes, own.max_nodes) != (hello.min_nodes, hello.max_nodes) {
            return no(format!(
                "node 0 ({here}) was started for {} hosts, {there} for {}: give all the same --nnodes",
                range(own),
                range(hello)
            ));
        }
        if own.outage_ms != hello.outage_ms {
            let seconds = |h: &pb::NodeHello| h.outage_ms as f64 / 1000.0;
            return no(format!(
                "node 0 ({here}) survives outages of {} s, {there} of {} s: give all the same --outage-limit",
                seconds(own),
                seconds(hello)
            ));
        }
        let ranks: usize = self.nodes.values().map(|n| n.hello.nproc as usize).sum();
        if hello.nproc == 0 || ranks + hello.nproc as usize > MAX_WORLD {
            return no(format!("{there} brings {} ranks; a job has 1 to {MAX_WORLD}", hello.nproc));
        }
        let most = *self.plan.nodes.end();
        if let Some(wanted) = hello.node_rank.map(|n| n as usize) {
            if wanted >= most {
                return no(format!("{there} was started as node {wanted}, but the job has {most} hosts, from 0"));
            }
            let holder = self.nodes.values().find(|n| match (n.hello.node_rank, n.part) {
                (_, Some(part)) if self.restart == 0 && self.running() => part.number == wanted,
                (number, _) => number == Some(wanted as u32),
            });
            if let Some(holder) = holder.filter(|_| !self.may_restart()) {
                return no(format!("{} is node {wanted} already; {there} was started as that too", holder.hello.host));
            }
        }
        match self.phase {
            Phase::Over => no("the job is over".into()),
            Phase::Gathering(_) if self.nodes.len() < most => Ok(()),
            _ if !self.may_restart() => no(format!("the job runs already, with {} hosts", self.parts().count())),
            _ if self.nodes.len() >= most + MAX_SPARES => no("too many hosts wait for a place in the job".into()),
            _ => Ok(()),
        }
    }

    /// Does what is due: starts with fewer hosts than possible, reports missing hosts, or gives up.
    pub(super) fn gather(&mut self, now: Instant) {
        let Phase::Gathering(Gathering { since, last, say }) = &mut self.phase else { return };
        let waited = now.saturating_duration_since(*since);
        if self.nodes.len() >= *self.plan.nodes.start() {
            if now.saturating_duration_since(*last) >= self.plan.settle {
                self.begin(now);
            }
        } else if waited >= self.plan.gather {
            let limit = self.plan.gather.as_secs_f64();
            let text = format!("after {limit:.0} s the job cannot start: {}", self.missing());
            let failure = Failure::of_job(FailureKind::NodeLost, text);
            self.decide(Candidate { failure, code: None, is_final: true });
        } else if now >= *say {
            *say = now + SAY_AGAIN;
            let text = format!("waiting for {:.0} s: {}", waited.as_secs_f64(), self.missing());
            self.tell_all(|_| Down::Note(text.clone()));
        }
    }

    /// The hosts that have joined and those that are missing, while hosts gather.
    pub(super) fn missing(&self) -> String {
        let (there, least) = (self.nodes.len(), *self.plan.nodes.start());
        let names: Vec<&str> = self.nodes.values().map(|n| n.hello.host.as_str()).collect();
        let mut gone = self.hosts.clone();
        for name in &names {
            if let Some(i) = gone.iter().position(|g| g == name) {
                gone.remove(i);
            }
        }
        let gone = match gone.is_empty() {
            true => String::new(),
            false => format!("; of those of the last start {} has not come back", gone.join(", ")),
        };
        format!("{there} of at least {least} hosts there ({}){gone}", names.join(", "))
    }

    /// Message to a host that comes while the job runs.
    pub(super) fn no_place(&self) -> String {
        let hosts = self.parts().count();
        format!("the job runs on {hosts} hosts already; this host joins it at the next restart")
    }

    pub(super) fn begin_if_all_are_there(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Gathering(_)) && self.nodes.len() >= *self.plan.nodes.end() {
            self.begin(now);
        }
    }

    /// Gives every host its part, with everything fresh.
    pub(super) fn begin(&mut self, now: Instant) {
        let most = *self.plan.nodes.end();
        // The root's host is node 0. Numbers that hosts asked for are kept, the others fill the gaps in order of arrival.
        let mut numbers: BTreeMap<usize, u64> = BTreeMap::from([(0, OWN)]);
        for (id, node) in self.nodes.iter().filter(|(id, _)| **id != OWN) {
            if let Some(wanted) = node.hello.node_rank {
                numbers.entry(wanted as usize).or_insert(*id);
            }
        }
        for id in self.nodes.keys() {
            if numbers.len() < most && !numbers.values().any(|taken| taken == id) {
                let free = (0..).find(|n| !numbers.contains_key(n)).unwrap_or(most);
                numbers.insert(free, *id);
            }
        }
        let ids: Vec<u64> = numbers.into_values().collect();
        let mut first_rank = 0;
        for (number, id) in ids.iter().enumerate() {
            if let Some(node) = self.nodes.get_mut(id) {
                node.part = Some(HostEntry { number, first_rank, done: None });
                node.heard = now;
                first_rank += node.hello.nproc as usize;
            }
        }
        let world = first_rank;
        self.hosts = ids.iter().filter_map(|id| Some(self.nodes.get(id)?.hello.host.clone())).collect();
        self.phase = Phase::Running;
        self.store = KvStore::new(world);
        self.streams = Streams::default();
        self.stalls = Stalls::new(self.plan.stall);
        self.transit = Transit::new(self.plan.outage);
        self.reference = None;
        self.candidates.clear();
        self.failing = None;
        self.verdict = None;
        self.ends = Ends::default();
        self.reports.clear();
        self.watching.begin();
        for id in &ids {
            let Some((part, nproc)) = self.nodes.get(id).and_then(|n| Some((n.part?, n.hello.nproc))) else { continue };
            let begin = pb::Begin {
                restart: self.restart,
                node: part.number as u32,
                nodes: ids.len() as u32,
                first_rank: part.first_rank as u32,
                nproc,
                world: world as u32,
                cost_model: self.plan.cost_model.clone(),
            };
            self.send(*id, Down::Begin(begin));
            if self.watching.on {
                self.send(*id, Down::Watched(true));
            }
        }
        // Who has no place may get one in the next start, if there is to be one.
        let spares: Vec<u64> = self.nodes.keys().copied().filter(|id| !ids.contains(id)).collect();
        for id in spares {
            let item = if self.may_restart() { Down::Note(self.no_place()) } else { Down::Over(0) };
            self.send(id, item);
        }
    }
}
