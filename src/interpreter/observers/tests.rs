//! Random programs that open and end scopes of observers, in any order and while an observer is called, against a plain model.

use super::*;
use crate::functional::{IntoTarget, ones};
use crate::placement::Device;
use oflow_base::Random;

/// What is shown, in order: the moment and the number of the observer.
type Shown = Rc<RefCell<Vec<(u8, usize)>>>;

/// What an observer does the next time it is called.
type Act = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;

struct Logs {
    number: usize,
    at: Moments,
    shown: Shown,
    act: Act,
}

impl Logs {
    fn log(&self, moment: u8) {
        self.shown.borrow_mut().push((moment, self.number));
        let act = self.act.borrow_mut().take();
        if let Some(act) = act {
            act();
        }
    }
}

impl Observer for Logs {
    fn moments(&self) -> Moments {
        self.at
    }
    fn before(&self, _: &Call<'_>) -> Result<()> {
        self.log(0);
        Ok(())
    }
    fn results(&self, _: &Call<'_>, _: &mut Outputs) -> Result<()> {
        self.log(1);
        Ok(())
    }
}

/// A scope of the model: what it observes or hides.
#[derive(Clone)]
struct Entry {
    hides: bool,
    at: Moments,
    number: usize,
}

/// The scopes that are open, with the entries of the model in the same order.
#[derive(Default)]
struct Open {
    scopes: Vec<Scope>,
    model: Vec<Entry>,
    opened: usize,
}

impl Open {
    /// Numbers of the observers that are to be shown a moment.
    fn in_force(&self, at: Moments) -> Vec<usize> {
        let mut found = vec![];
        for e in &self.model {
            match e.hides {
                true if e.at.meets(at) => found.clear(),
                false if e.at.meets(at) => found.push(e.number),
                _ => {}
            }
        }
        found
    }
    /// Opens a scope or ends one.
    fn change(&mut self, random: &mut Random, shown: &Shown, act: &Act) {
        let sets = [Moments::BEFORE, Moments::RESULTS, Moments::BEFORE.and(Moments::RESULTS)];
        let (at, number) = (*random.of(&sets), self.opened);
        match random.below(5) {
            0 | 1 if !self.scopes.is_empty() => {
                let i = random.below(self.scopes.len());
                self.model.remove(i);
                drop(self.scopes.remove(i));
            }
            2 => {
                self.model.push(Entry { hides: true, at, number });
                self.scopes.push(hide(at));
            }
            _ => {
                self.model.push(Entry { hides: false, at, number });
                self.scopes.push(observe(Rc::new(Logs { number, at, shown: shown.clone(), act: act.clone() })));
                self.opened += 1;
            }
        }
    }
}

#[test]
fn scopes_open_and_end_in_any_order_also_while_an_observer_is_called() {
    let x = ones([1], Device::Cpu.dtype(oflow_kernels::DType::F32)).unwrap();
    let mut changed_while_called = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (shown, act, open) = (Shown::default(), Act::default(), Rc::new(RefCell::new(Open::default())));
        for _ in 0..30 {
            if random.below(2) == 0 {
                open.borrow_mut().change(&mut random, &shown, &act);
                continue;
            }
            // A call shows a moment to those who are in force when it comes, whatever they do meanwhile.
            let before = open.borrow().in_force(Moments::BEFORE);
            if random.one_in(2) && !before.is_empty() {
                let (open, shown, later, mut random) = (open.clone(), shown.clone(), act.clone(), random);
                *act.borrow_mut() = Some(Box::new(move || open.borrow_mut().change(&mut random, &shown, &later)));
                changed_while_called += 1;
            }
            shown.borrow_mut().clear();
            x.neg().unwrap();
            let after = open.borrow().in_force(Moments::RESULTS);
            let want: Vec<(u8, usize)> = before.iter().map(|n| (0, *n)).chain(after.iter().map(|n| (1, *n))).collect();
            assert_eq!(*shown.borrow(), want, "seed {seed}");
            for at in [Moments::BEFORE, Moments::RESULTS] {
                let any = !open.borrow().in_force(at).is_empty();
                assert_eq!(any, is_observed(at), "seed {seed}");
            }
        }
        drop(open);
        assert!(!is_observed(Moments::BEFORE) && !is_observed(Moments::RESULTS), "seed {seed}: a scope is left");
    }
    assert!(changed_while_called > 500, "only {changed_while_called} calls changed scopes");
}
