//! `selvedge topo explain`: the rule that decided, the hop that costs it, what would flip it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use clap::Subcommand;
use selvedge_family::host::change::Question;
use selvedge_family::host::decision::PortKey;
use selvedge_family::host::explain::ring::explain_ring;
use selvedge_family::host::explain::{Explanation, Lab, NoExplanation, Pair};
use selvedge_family::host::level::Release;
use selvedge_family::host::message::{read_line, version_in};
use selvedge_family::host::place::{PlaceName, find_element, find_gpu, find_net};

use crate::Globals;
use crate::cmd::topo::{Beside, Server, name, tell_unread, unanswered};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Why a port reaches a GPU's memory (GPUDirect RDMA) or does not.
    Gdr(Gdr),
    /// Why two GPUs reach each other's memory or do not.
    P2p(P2p),
    /// Why there are so many rings of that width.
    Ring(Ring),
    /// What a line of NCCL's log means, such as "distance 7 > 4".
    Log(Line),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every change under \"flips\" was made and the decision was seen to flip.\n\
                        Exit status: 0 on in both directions, 1 off in one or NCCL refuses the \
                        file, 2 error."
)]
struct Gdr {
    #[command(flatten)]
    server: Server,
    /// A GPU: GPU0 by rank, or its bus id.
    #[arg(value_name = "GPU")]
    gpu: PlaceName,
    /// A port: NET0 by number, mlx5_0 by name, or its card's bus id.
    #[arg(value_name = "NIC")]
    net: PlaceName,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every change under \"flips\" was made and the decision was seen to flip.\n\
                        Exit status: 0 P2P, 1 no P2P or NCCL refuses the file, 2 error."
)]
struct P2p {
    #[command(flatten)]
    server: Server,
    /// A GPU: GPU0 by rank, or its bus id.
    #[arg(value_name = "GPU")]
    a: PlaceName,
    /// Another.
    #[arg(value_name = "GPU")]
    b: PlaceName,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Told: the walk of the search that found the rings and its conditions, what \
                        stopped the next faster speed, the fullest link, and single changes that \
                        make the rings carry more or less; each was made.\n\
                        Exit status: 0 told, 1 NCCL refuses the file, 2 error."
)]
struct Ring {
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Line {
    /// The line, or a file of lines; - for standard input.
    #[arg(value_name = "LINE")]
    line: String,
    /// Any version of NCCL, such as 2.18.3; else the one that the log names, else all.
    #[arg(long, value_name = "VERSION")]
    nccl: Option<Release>,
}

pub(crate) fn run(args: &Explain, globals: &Globals) -> Outcome {
    match &args.what {
        What::Gdr(args) => explain_gdr(args, globals),
        What::P2p(args) => explain_p2p(args, globals),
        What::Ring(args) => explain_rings(args, globals),
        What::Log(args) => explain_line(args, globals),
    }
}

fn explain_gdr(args: &Gdr, globals: &Globals) -> Outcome {
    let question = args.server.question()?;
    let gpu = rank_of(&question, &args.gpu, &args.server.file)?;
    let dev = find_net(&question.root, &args.net).within(|| "there is no such port")?;
    let net = PortKey { dev, twin: 0 };
    let pairs = [false, true].map(|send| Pair::Gdr { gpu, net, send });
    print(question, &pairs, &args.server.file, globals)
}

fn explain_p2p(args: &P2p, globals: &Globals) -> Outcome {
    let question = args.server.question()?;
    let a = rank_of(&question, &args.a, &args.server.file)?;
    let b = rank_of(&question, &args.b, &args.server.file)?;
    if a == b {
        return Err(Failure::new(format!("GPU{a} twice; a pair is two GPUs")));
    }
    print(question, &[Pair::P2p { a, b }], &args.server.file, globals)
}

fn explain_rings(args: &Ring, globals: &Globals) -> Outcome {
    let question = args.server.question()?;
    let unread = tell_unread(&question)?;
    let told = explain_ring(&question)
        .map_err(|error| unanswered(error, &name(&args.server.file), question.profile))?;
    if globals.json {
        render::print_json(&Beside { shown: &told, unread: &unread })?;
    } else {
        render::print(&told.to_string())?;
    }
    Ok(Answer::Yes)
}

fn rank_of(question: &Question, place: &PlaceName, file: &Path) -> Outcome<i32> {
    let no_gpu = || "there is no such GPU";
    match question.whole() {
        Ok(view) => {
            let gpu = find_gpu(&view.graph, place).within(no_gpu)?;
            Ok(view.graph.gpu(gpu).rank)
        }
        // A server that is refused for a fault can still be asked why.
        Err(_) if matches!(place, PlaceName::Gpu(_)) => {
            find_element(&question.root, place).within(no_gpu)?;
            let PlaceName::Gpu(rank) = place else { return Err(Failure::new("no rank")) };
            Ok(*rank)
        }
        Err(error) => Err(unanswered(error, &name(file), question.profile)),
    }
}

fn print(question: Question, pairs: &[Pair], file: &Path, globals: &Globals) -> Outcome {
    let profile = question.profile;
    let unread = tell_unread(&question)?;
    let lab = Lab::new(question);
    let mut explanations: Vec<Explanation> = Vec::new();
    for pair in pairs {
        explanations.push(lab.explain(*pair).map_err(|error| match error {
            NoExplanation::Answer(error) => unanswered(error, &name(file), profile),
            other => Failure::from(other),
        })?);
    }
    let answer = if explanations.iter().all(|it| it.on) { Answer::Yes } else { Answer::No };
    if globals.json {
        let shown = explanations.iter().map(|shown| Beside { shown, unread: &unread });
        render::print_json(&shown.collect::<Vec<_>>())?;
    } else {
        // What holds for both directions is told once.
        let mut out = String::new();
        let mut last = None;
        for it in explanations.iter().rev() {
            let (headline, text) = (it.headline(), it.to_string());
            let body = text.split_once('\n').map_or("", |it| it.1).to_owned();
            let same = last.as_ref() == Some(&body);
            out = match (same, out.is_empty()) {
                (true, _) => format!("{headline}\n{out}"),
                (false, true) => text,
                (false, false) => format!("{text}\n{out}"),
            };
            last = Some(body);
        }
        render::print(&out)?;
    }
    Ok(answer)
}

fn explain_line(args: &Line, globals: &Globals) -> Outcome {
    let text = match args.line.as_str() {
        "-" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).within(|| "cannot read standard input")?;
            text
        }
        line if Path::new(line).is_file() => {
            fs::read_to_string(line).within(|| format!("cannot read {line}"))?
        }
        line => line.to_owned(),
    };
    let release = args.nccl.or_else(|| version_in(&text));
    let mut found = Vec::new();
    let mut last = None;
    for line in text.lines() {
        match read_line(line, release) {
            // What several ranks say alike is told once.
            Ok(message) if !found.contains(&message) => found.push(message),
            Ok(_) => {}
            Err(error) => last = Some(error),
        }
    }
    if found.is_empty() {
        let Some(error) = last else { return Err(Failure::new("the line is empty")) };
        return Err(Failure::from(error).within("nothing to explain"));
    }
    if globals.json {
        render::print_json(&found)?;
    } else {
        for message in &found {
            render::print(&message.to_string())?;
        }
    }
    Ok(Answer::Yes)
}
