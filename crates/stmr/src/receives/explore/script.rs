//! Programs that receive, what is sent to them, and who errs, as they are drawn.

use std::collections::BTreeMap;

use crate::explore::dice::Dice;
use crate::receives::Pattern;

/// How many replicas there are, and processes that send.
pub(super) const N: usize = 3;
pub(super) const SOURCES: usize = 3;

const TAG: i32 = 5;

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// Begins a receive, which has a label.
    Begin(usize, Pattern),
    /// Waits for one.
    Wait(usize),
    /// Cancels one, and if it was, begins it anew.
    Cancel(usize, Pattern),
    /// Compares what was taken so far; true is an error of what is sent.
    Send(bool),
}

/// A message of the senders' program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) comm: usize,
    pub(super) tag: i32,
    /// Its sender waits until it is taken.
    pub(super) waits: bool,
}

/// What happens to one replica, or to its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Killed,
    /// Another process of its set dies.
    Broken,
    /// It is asked to lead no more.
    Yields,
    /// It sends something wrong, and is marked.
    Marked,
    /// It makes another receive than its siblings, or none, or one more.
    Strays,
}

/// A program, what is sent to it, and who errs.
pub(super) struct Script {
    pub(super) ops: Vec<Op>,
    pub(super) sent: Vec<Vec<Sent>>,
    pub(super) fault: Fault,
    pub(super) faulty: usize,
    pub(super) erring: Vec<Op>,
}

impl Script {
    pub(super) fn draw(dice: &mut Dice, fault: Fault) -> Self {
        let (mut ops, mut sent) = (Vec::new(), vec![Vec::new(); SOURCES]);
        for round in 0..2 {
            Self::draw_round(dice, round, &mut ops, &mut sent);
        }
        ops.push(Op::Send(false));
        let mut erring = ops.clone();
        let is_send = |at: &usize| matches!(ops[*at], Op::Send(_));
        let is_begin = |at: &usize| matches!(ops[*at], Op::Begin(..));
        match fault {
            Fault::Marked => {
                let sends: Vec<usize> = (0..ops.len()).filter(is_send).collect();
                erring[sends[dice.below(sends.len())]] = Op::Send(true);
            }
            Fault::Strays => {
                let begins: Vec<usize> = (0..ops.len()).filter(is_begin).collect();
                let at = begins[dice.below(begins.len())];
                Self::stray(dice, at, &mut erring);
            }
            _ => {}
        }
        Self { ops, sent, fault, faulty: dice.below(N), erring }
    }

    /// Receives that may take each other's messages, and as many messages as let all of them end
    /// whichever takes which.
    fn draw_round(dice: &mut Dice, comm: usize, ops: &mut Vec<Op>, sent: &mut [Vec<Sent>]) {
        let (mut labels, mut patterns) = (Vec::new(), BTreeMap::new());
        let n = 1 + dice.below(4);
        let cancels = dice.one_in(3);
        let (has_any_tag, has_named) = (dice.one_in(4), dice.one_in(3));
        let mut named = [0; SOURCES];
        for _ in 0..n {
            let source = (has_named && dice.one_in(3)).then(|| dice.below(SOURCES));
            source.into_iter().for_each(|it| named[it] += 1);
            let tag = (!has_any_tag || source.is_some()).then_some(TAG);
            let label = ops.len();
            labels.push(label);
            let source = source.map(|it| it as i32);
            let pattern = Pattern { comm, source, tag };
            patterns.insert(label, pattern);
            ops.push(Op::Begin(label, pattern));
            if dice.one_in(4) {
                ops.push(Op::Send(false));
            }
        }
        let wild = n - named.iter().sum::<usize>();
        if has_named {
            // Who is named has enough left when all that are not took from him.
            for (source, n) in named.iter().enumerate() {
                let n = if *n == 0 { 0 } else { n + wild };
                sent[source].extend(std::iter::repeat_n(Sent { comm, tag: TAG, waits: false }, n));
            }
        }
        if named.iter().all(|it| *it == 0) {
            for _ in 0..wild {
                sent[dice.below(SOURCES)].push(Sent { comm, tag: TAG, waits: dice.one_in(2) });
            }
        }
        while !labels.is_empty() {
            if dice.one_in(3) {
                ops.push(Op::Send(false));
            }
            if cancels && dice.one_in(3) {
                let label = labels[dice.below(labels.len())];
                ops.push(Op::Cancel(label, patterns[&label]));
            }
            ops.push(Op::Wait(labels.remove(dice.below(labels.len()))));
        }
    }

    fn stray(dice: &mut Dice, at: usize, ops: &mut Vec<Op>) {
        let Op::Begin(label, pattern) = &mut ops[at] else { unreachable!("it is a receive") };
        match dice.below(5) {
            0 => pattern.tag = Some(99),
            1 => pattern.source = Some(dice.below(SOURCES) as i32),
            2 => pattern.source = None,
            3 => {
                let label = *label;
                let is_its = |it: &Op| match it {
                    Op::Begin(of, _) | Op::Wait(of) | Op::Cancel(of, _) => *of == label,
                    Op::Send(_) => false,
                };
                ops.retain(|it| !is_its(it));
            }
            _ => {
                let more = Op::Begin(1_000_000, *pattern);
                ops.insert(at, more);
                if dice.one_in(2) {
                    ops.insert(at + 2, Op::Wait(1_000_000));
                }
            }
        }
    }

    pub(super) fn ops(&self, set: usize) -> &[Op] {
        if set == self.faulty { &self.erring } else { &self.ops }
    }
}
