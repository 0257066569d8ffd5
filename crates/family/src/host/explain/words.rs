//! Explanations in sentences.

use std::fmt;

use crate::host::change::Change;
use crate::host::explain::{Explanation, Level, Pair, Rule, Verdict, Way};
use crate::host::level::words;
use crate::host::nccl::path::PathKind;
use crate::host::nccl::verdict::LimitSource;
use crate::host::place::short;

pub(super) fn about(pair: Pair) -> String {
    match pair {
        Pair::Gdr { gpu, net, send: true } => {
            format!("GPUDirect RDMA, GPU{gpu} sending through {net}")
        }
        Pair::Gdr { gpu, net, send: false } => {
            format!("GPUDirect RDMA, GPU{gpu} receiving through {net}")
        }
        Pair::P2p { a, b } => format!("P2P, GPU{a} with GPU{b}"),
    }
}

/// What a change is about: two of one key replace each other.
pub(super) fn key(change: &Change) -> String {
    match change {
        Change::Set { name, .. } | Change::Unset { name } => name.clone(),
        Change::Attribute { place, attr, .. } => format!("{place}.{attr}"),
        Change::Broken { pair: (a, b), .. } => format!("broken {a}-{b}"),
        other => other.to_string().split('=').next().unwrap_or_default().to_owned(),
    }
}

/// What is decided after a flip.
pub(super) fn then(pair: Pair, verdict: Verdict) -> String {
    match (pair, verdict.on) {
        (Pair::Gdr { .. }, true) => "GPUDirect RDMA".to_owned(),
        (Pair::Gdr { .. }, false) => "no GPUDirect RDMA".to_owned(),
        (Pair::P2p { .. }, true) => "P2P".to_owned(),
        (Pair::P2p { .. }, false) => match verdict.transport {
            Some(it) => format!("no P2P, {} instead", it.name()),
            None => "NCCL gives up".to_owned(),
        },
    }
}

/// The rule in words.
pub(super) fn because(pair: Pair, verdict: Verdict, explanation: &Explanation) -> String {
    match verdict.rule {
        Rule::Containers => "the two ranks are in containers that share no /dev/shm, and P2P \
                             handles are passed only between ranks of one container"
            .to_owned(),
        Rule::Distance { distance, limit, source, proxy } => {
            let compared = if verdict.on { "is within" } else { "is beyond" };
            // What a detour made of it is not what decided.
            let found = explanation.way.as_ref().filter(|_| !verdict.on && proxy.is_none());
            let found = PathKind::ALL
                .into_iter()
                .find(|it| found.is_some_and(|way| way.kind == it.name() && *it > limit));
            let found = found.unwrap_or(distance);
            let (name, far) = (found.name(), words(found));
            let detour = if found == distance { "" } else { " after the detour" };
            let numbers = numbers(explanation, verdict.on);
            let whose = proxy.map_or_else(String::new, |it| {
                format!(" from GPU{it}, which sends in its place (PXN),")
            });
            let limit = limit.name();
            let source = source_words(source, pair);
            format!(
                "the distance{whose} {name} ({far}) {compared} the limit {limit}{source}{numbers}{detour}"
            )
        }
        Rule::Broken { a, b, fatal: true } => format!(
            "the driver reports P2P between GPU {a} and GPU {b} (NVML's numbers) broken although \
             NVLink connects them, and NCCL gives up"
        ),
        Rule::Broken { a, b, fatal: false } => {
            format!("the driver reports P2P between GPU {a} and GPU {b} (NVML's numbers) broken")
        }
        Rule::Network => "both GPUs reach a port behind PCI switches alone faster than they reach \
                          each other, so the network is used inside the server"
            .to_owned(),
        Rule::Port => {
            "the port cannot reach GPU memory: its <net> has gdr=\"0\" or no gdr, as NCCL \
                       writes where neither nvidia-peermem nor DMA-BUF works"
                .to_owned()
        }
        Rule::Gpu => {
            "the GPU's memory cannot be reached from outside: its <gpu> has gdr=\"0\"".to_owned()
        }
        Rule::ReadVariable => {
            "sending reads the GPU's memory, and NCCL_NET_GDR_READ=0 forbids that".to_owned()
        }
        Rule::ReadPeer => "sending reads the GPU's memory, which this version does only where the \
                           GPU has an NVLink peer"
            .to_owned(),
        Rule::NoNetwork => "all ranks are on this server, and this version leaves the ports out \
                            where no network is needed"
            .to_owned(),
    }
}

/// Why nothing flips it.
pub(super) fn fixed(pair: Pair, verdict: Verdict) -> String {
    match (pair, verdict.rule) {
        (_, Rule::Distance { distance: PathKind::Loc, .. }) if verdict.on => {
            "this version takes a way that it never found for the nearest of all, LOC, which no \
             level excludes"
                .to_owned()
        }
        (_, Rule::Distance { distance: PathKind::Net | PathKind::Dis, .. }) => {
            "no way connects the two inside the server, and no level is that far".to_owned()
        }
        _ => "no variable, no attribute and no repair that NCCL looks at turns it round".to_owned(),
    }
}

fn source_words(source: LimitSource, pair: Pair) -> &'static str {
    match (source, pair) {
        (LimitSource::Variable, Pair::P2p { .. }) => {
            ", which NCCL_P2P_LEVEL or NCCL_P2P_DISABLE sets"
        }
        (LimitSource::Variable, Pair::Gdr { .. }) => ", which NCCL_NET_GDR_LEVEL sets",
        (LimitSource::Processor, _) => ", which this version has for this processor",
        (LimitSource::FewOnAmd, _) => ", which holds for two GPUs at most on an AMD processor",
        (LimitSource::ChipToChip, _) => ", which holds unless NCCL_NET_GDR_C2C=0",
        (LimitSource::Default, _) => ", the default of this version",
    }
}

fn numbers(explanation: &Explanation, on: bool) -> String {
    let number = |it: Option<Level>| it.and_then(|it| it.number);
    match (number(explanation.distance), number(explanation.limit)) {
        (Some(distance), Some(limit)) => {
            let sign = if on { "<=" } else { ">" };
            format!(
                "; NCCL {} writes this as \"distance {distance} {sign} {limit}\"",
                explanation.nccl
            )
        }
        _ => String::new(),
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} GB/s: {}", self.kind, short(self.gb_per_s), self.from)?;
        for step in &self.hops {
            let mark = if step.costs { "*" } else { "" };
            write!(f, " --{} {}{mark}--> {}", step.link, short(step.gb_per_s), step.to)?;
        }
        Ok(())
    }
}

impl Explanation {
    /// What was asked and what was decided.
    pub fn headline(&self) -> String {
        let on = if self.on { "yes" } else { "no" };
        match self.transport {
            Some(it) if !self.on => format!("{}: {on}, {} instead", self.about, it.name()),
            _ => format!("{}: {on}", self.about),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline())?;
        writeln!(f, "  because  {}", self.because)?;
        if let Some(way) = &self.way {
            writeln!(f, "  way      {way}")?;
        }
        if let Some(way) = &self.instead {
            writeln!(f, "  taken    {way}")?;
        }
        for flip in &self.flips {
            writeln!(f, "  flips    {}  =>  {}", flip.changes.join(" "), flip.then)?;
        }
        if let Some(fixed) = &self.fixed {
            writeln!(f, "  fixed    {fixed}")?;
        }
        if !self.on && !self.near.is_empty() {
            let verb = if self.near.len() == 1 { "has" } else { "have" };
            writeln!(f, "  near     {} {verb} it", self.near.join(", "))?;
        }
        Ok(())
    }
}
