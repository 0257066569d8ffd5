//! `selvedge top`: the pod, the queue and what happens, live on a terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};
use ratatui::{Frame, Terminal};
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::Globals;
use crate::client::Client;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
#[command(after_help = "Keys: q or Esc ends it, arrows or j and k move through the jobs.")]
pub(crate) struct Top {
    /// Ask again every so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    every: f64,
    /// Print one picture as plain text, and end.
    #[arg(long)]
    once: bool,
}

#[derive(Debug, Deserialize)]
struct Status {
    name: String,
    now_s: f64,
    speed: f64,
    level: String,
    jobs: BTreeMap<String, u64>,
    chips: u64,
    chips_used: u64,
    chips_out: u64,
    cases_open: u64,
    journal_ok: bool,
}

#[derive(Debug, Deserialize)]
struct Cubes {
    cubes: Vec<Cube>,
}

#[derive(Debug, Deserialize)]
struct Cube {
    name: String,
    chips: u32,
    chips_used: u32,
    jobs: Vec<u32>,
    health: String,
    drained: bool,
}

#[derive(Debug, Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    id: u32,
    name: String,
    state: String,
    stage: Option<String>,
    shape: String,
    chips: u32,
    priority: u8,
    owner: String,
    submitted_s: f64,
    held: bool,
    why: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Recent {
    events: Vec<Happened>,
}

#[derive(Debug, Deserialize)]
struct Happened {
    at_s: f64,
    text: String,
}

/// All that one picture shows.
#[derive(Debug)]
struct View {
    status: Status,
    cubes: Vec<Cube>,
    jobs: Vec<Job>,
    events: Vec<Happened>,
    /// The first job that is shown.
    first: usize,
    /// Why all this is not the newest.
    stale: Option<String>,
}

/// The size of a picture that is printed.
const ONCE: (u16, u16) = (100, 40);

pub(crate) fn run(args: &Top, globals: &Globals) -> Outcome {
    if globals.json {
        return Err(Failure::new("`top` is for people")
            .hint("`selvedge status`, `job list` and `events` have --json"));
    }
    if !(0.1..=3600.0).contains(&args.every) {
        return Err(Failure::new(format!("--every {} must be from 0.1 to 3600", args.every)));
    }
    let client = Client::connect(globals)?;
    if args.once {
        render::print(&picture(&ask(&client)?, ONCE)?)?;
        return Ok(Answer::Yes);
    }
    if !std::io::stdout().is_terminal() {
        return Err(Failure::new("`top` draws on a terminal, and this is none")
            .hint("`selvedge top --once` prints one picture"));
    }
    let asked = told_to_end()?;
    let mut terminal = ratatui::try_init().within(|| "cannot draw on this terminal")?;
    let done = live(&mut terminal, &client, Duration::from_secs_f64(args.every), &asked);
    // The terminal is given back whatever went wrong.
    ratatui::restore();
    done.map(|()| Answer::Yes)
}

/// Turns true at a signal that ends a program: the terminal is to be given back before that.
fn told_to_end() -> Outcome<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&told))
            .within(|| "cannot listen for signals")?;
    }
    Ok(told)
}

/// How soon a signal is heeded.
const HEED_EVERY: Duration = Duration::from_millis(200);

/// Whether a key was pressed, or something else done, within `span`; no later than a signal.
fn is_input(span: Duration, asked: &AtomicBool) -> std::io::Result<bool> {
    let mut left = span;
    while !asked.load(Ordering::Relaxed) && !left.is_zero() {
        let turn = left.min(HEED_EVERY);
        if event::poll(turn)? {
            return Ok(true);
        }
        left -= turn;
    }
    Ok(false)
}

fn live(
    terminal: &mut Terminal<impl ratatui::backend::Backend<Error = std::io::Error>>,
    client: &Client,
    every: Duration,
    asked: &AtomicBool,
) -> Outcome<()> {
    let mut view = ask(client)?;
    loop {
        view.first = view.first.min(view.jobs.len().saturating_sub(1));
        terminal.draw(|frame| draw(frame, &view))?;
        let is_input = is_input(every, asked)?;
        if asked.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !is_input {
            view = match ask(client) {
                Ok(new) => View { first: view.first, ..new },
                // A server that is being upgraded answers again in a moment.
                Err(failure) => View { stale: Some(failure.text()), ..view },
            };
            continue;
        }
        let Input::Key(key) = event::read()? else { continue };
        let is_ctrl_c =
            key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        match key.code {
            _ if key.kind == KeyEventKind::Release => (),
            _ if is_ctrl_c => return Ok(()),
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Down | KeyCode::Char('j') => view.first += 1,
            KeyCode::Up | KeyCode::Char('k') => view.first = view.first.saturating_sub(1),
            _ => (),
        }
    }
}

fn ask(client: &Client) -> Outcome<View> {
    let Cubes { cubes } = client.get("/v1/cubes")?;
    let Jobs { jobs } = client.get("/v1/jobs?state=queued,starting,running,stopping")?;
    let Recent { mut events } = client.get("/v1/events/recent?n=50")?;
    events.reverse();
    Ok(View { status: client.get("/v1/status")?, cubes, jobs, events, first: 0, stale: None })
}

/// One picture as plain text.
fn picture(view: &View, (width, height): (u16, u16)) -> Outcome<String> {
    let backend = TestBackend::new(width, height);
    let mut terminal = Terminal::new(backend).expect("a picture in memory has no terminal to lack");
    terminal.draw(|frame| draw(frame, view)).expect("nor one to fail");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(width)) {
        let mut skip = 0;
        let mut line = String::new();
        for cell in row {
            // A wide character covers the cell behind it.
            if skip == 0 {
                line.push_str(cell.symbol());
                skip = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Ok(render::line(text))
}

/// Cubes in one row of the map: as many of 16, 8 or 4 as fit between its borders.
fn columns(width: u16) -> usize {
    let fits = |it: &usize| it * TILE + 2 <= usize::from(width);
    [16, 8].into_iter().find(fits).unwrap_or(4)
}

/// Rows of the map, at most.
const ROWS: usize = 8;

fn draw(frame: &mut Frame<'_>, view: &View) {
    let columns = columns(frame.area().width);
    let n_rows = view.cubes.len().div_ceil(columns).min(ROWS);
    let map = u16::try_from(n_rows).unwrap_or(8) + 2;
    let rows =
        [Constraint::Length(3), Constraint::Length(map), Constraint::Fill(3), Constraint::Fill(2)];
    let [head, pod, jobs, events] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(header(view), head);
    frame.render_widget(pod_map(view, columns), pod);
    frame.render_widget(job_table(view), jobs);
    frame.render_widget(event_list(view, events), events);
}

fn header(view: &View) -> Paragraph<'_> {
    let status = &view.status;
    let trouble = match (&view.stale, status.journal_ok) {
        (Some(why), _) => format!("  no answer: {why}"),
        (None, false) => "  the journal cannot be written".to_owned(),
        (None, true) => String::new(),
    };
    let jobs: Vec<String> = (status.jobs.iter())
        .filter(|(_, n)| **n != 0)
        .map(|(state, n)| format!("{} {state}", number::grouped(*n)))
        .collect();
    let speed = if status.speed == 1.0 { String::new() } else { format!(" at {}x", status.speed) };
    let share = number::share(status.chips_used as f64 / status.chips.max(1) as f64);
    let colour = |is_bad: bool| if is_bad { bad() } else { Style::new() };
    let (used, out) = (number::grouped(status.chips_used), number::grouped(status.chips_out));
    Paragraph::new(vec![
        Line::from(vec![
            Span::styled(status.name.clone(), Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(format!(
                "  {}{speed}  acts at {}",
                number::clock(status.now_s),
                status.level
            )),
            Span::styled(trouble, bad()),
        ]),
        Line::from(vec![
            Span::raw(format!("{} chips, {used} used ({share}), ", number::grouped(status.chips))),
            Span::styled(format!("{out} out"), colour(status.chips_out != 0)),
            Span::raw(", "),
            Span::styled(
                number::counted(status.cases_open, "open case"),
                colour(status.cases_open != 0),
            ),
        ]),
        Line::from(format!(
            "jobs: {}",
            if jobs.is_empty() { "none".to_owned() } else { jobs.join(", ") }
        )),
    ])
}

/// Characters of one cube.
const TILE: usize = 4;

/// Each cube: the job that holds it, or how much of it is held, and a mark of its health.
fn pod_map(view: &View, columns: usize) -> Paragraph<'_> {
    let rows = view.cubes.chunks(columns).take(ROWS);
    let lines: Vec<Line<'_>> = rows.map(|row| row.iter().flat_map(tile).collect()).collect();
    let title = match view.cubes.len() {
        n if ROWS * columns < n => format!(" the first {} of {n} cubes ", ROWS * columns),
        _ => match (view.cubes.first(), view.cubes.last()) {
            (Some(first), Some(last)) => format!(" {} to {} ", first.name, last.name),
            _ => " no cubes ".to_owned(),
        },
    };
    Paragraph::new(lines).block(Block::bordered().title(title))
}

fn tile(cube: &Cube) -> [Span<'_>; 2] {
    let text = match &cube.jobs[..] {
        [] => "  ·".to_owned(),
        [job] if cube.chips_used == cube.chips => format!("{:>3}", job % 1000),
        _ if cube.chips_used == cube.chips => "all".to_owned(),
        _ => format!("{:>2}%", 100 * cube.chips_used / cube.chips.max(1)),
    };
    let mark = match (cube.health.as_str(), cube.drained) {
        ("ok", false) => " ",
        (_, true) => "d",
        ("out", _) => "!",
        _ => "~",
    };
    let style = match &cube.jobs[..] {
        [] => Style::new().fg(Color::DarkGray),
        [job, ..] => Style::new().fg(COLOURS[*job as usize % COLOURS.len()]),
    };
    [Span::styled(text, style), Span::styled(mark, bad())]
}

/// Colours that are told apart on light and dark terminals.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Green, Color::Magenta, Color::Yellow, Color::Blue, Color::Red];

fn job_table(view: &View) -> Table<'_> {
    let rows = view.jobs.iter().skip(view.first).map(|job| {
        let state = match (&job.stage, &job.why) {
            (Some(stage), _) => format!("{}: {stage}", job.state),
            (None, Some(why)) => format!("{}: {why}", job.state),
            (None, None) if job.held => format!("{}: held", job.state),
            (None, None) => job.state.clone(),
        };
        let colour = match job.state.as_str() {
            "running" => Style::new().fg(Color::Green),
            "starting" | "stopping" => Style::new().fg(Color::Yellow),
            _ => Style::new(),
        };
        let waited = number::clock(job.submitted_s);
        Row::new([
            Cell::from(job.id.to_string()),
            Cell::from(job.name.as_str()),
            Cell::from(state).style(colour),
            Cell::from(job.shape.as_str()),
            Cell::from(number::grouped(u64::from(job.chips))),
            Cell::from(job.priority.to_string()),
            Cell::from(job.owner.as_str()),
            Cell::from(waited),
        ])
    });
    let widths = [
        Constraint::Length(6),
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(16),
        Constraint::Length(6),
        Constraint::Length(4),
        Constraint::Fill(1),
        Constraint::Length(12),
    ];
    let header = ["job", "name", "state", "shape", "chips", "prio", "owner", "submitted"];
    let title = format!(" {} that are not over ", number::counted(view.jobs.len() as u64, "job"));
    Table::new(rows, widths)
        .header(Row::new(header).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::bordered().title(title))
}

fn event_list(view: &View, area: Rect) -> Paragraph<'_> {
    let n = usize::from(area.height.saturating_sub(2));
    let line = |it: &Happened| {
        let clock = Span::styled(
            format!("{:>12}  ", number::clock(it.at_s)),
            Style::new().fg(Color::DarkGray),
        );
        Line::from(vec![clock, Span::raw(it.text.clone())])
    };
    let lines: Vec<Line<'_>> = view.events.iter().take(n).map(line).collect();
    Paragraph::new(lines).block(Block::bordered().title(" what happened, newest first "))
}

fn bad() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn cube(n: u32, jobs: &[u32], chips_used: u32, health: &str, drained: bool) -> Cube {
        Cube {
            name: format!("cube{n}"),
            chips: 64,
            chips_used,
            jobs: jobs.to_vec(),
            health: health.to_owned(),
            drained,
        }
    }

    fn job(id: u32, name: &str, state: &str, stage: Option<&str>) -> Job {
        Job {
            id,
            name: name.to_owned(),
            state: state.to_owned(),
            stage: stage.map(str::to_owned),
            shape: "4x4x8".to_owned(),
            chips: 128,
            priority: 3,
            owner: "ada".to_owned(),
            submitted_s: 60.0,
            held: false,
            why: None,
        }
    }

    /// Of a pod where nothing has happened yet.
    fn status(chips: u64) -> Status {
        Status {
            name: "pod".to_owned(),
            now_s: 0.0,
            speed: 1.0,
            level: "observe".to_owned(),
            jobs: BTreeMap::new(),
            chips,
            chips_used: 0,
            chips_out: 0,
            cases_open: 0,
            journal_ok: true,
        }
    }

    #[test]
    fn a_picture_shows_the_pod_its_jobs_and_what_happened() {
        let status = Status {
            name: "TPUv4 pod".to_owned(),
            now_s: 3725.0,
            speed: 60.0,
            level: "repair".to_owned(),
            jobs: BTreeMap::from([("queued".to_owned(), 1), ("running".to_owned(), 1)]),
            chips_used: 136,
            chips_out: 4,
            cases_open: 1,
            ..status(256)
        };
        let cubes = vec![
            cube(0, &[7], 64, "ok", false),
            cube(1, &[7], 64, "degraded", false),
            cube(2, &[3, 5], 8, "out", true),
            cube(3, &[], 0, "ok", false),
        ];
        let jobs = vec![
            job(7, "<b>训练</b>", "running", None),
            job(8, &"long".repeat(40), "starting", Some("training")),
        ];
        let events = vec![Happened { at_s: 3700.0, text: "job7 runs".to_owned() }];
        let view = View { status, cubes, jobs, events, first: 0, stale: None };
        let picture = picture(&view, (90, 16)).unwrap();
        expect![[r#"
            TPUv4 pod  01:02:05 at 60x  acts at repair
            256 chips, 136 used (53.1 %), 4 out, 1 open case
            jobs: 1 queued, 1 running
            ┌ cube0 to cube3 ────────────────────────────────────────────────────────────────────────┐
            │  7   7~12%d  ·                                                                         │
            └────────────────────────────────────────────────────────────────────────────────────────┘
            ┌ 2 jobs that are not over ──────────────────────────────────────────────────────────────┐
            │job    name            state           shape            chips  prio owner   submitted   │
            │7      <b>训练</b>     running         4x4x8            128    3    ada     00:01:00    │
            │8      longlonglonglon starting: train 4x4x8            128    3    ada     00:01:00    │
            │                                                                                        │
            └────────────────────────────────────────────────────────────────────────────────────────┘
            ┌ what happened, newest first ───────────────────────────────────────────────────────────┐
            │    01:01:40  job7 runs                                                                 │
            │                                                                                        │
            └────────────────────────────────────────────────────────────────────────────────────────┘
        "#]].assert_eq(&picture);
    }

    #[test]
    fn what_is_not_the_newest_says_so_and_a_small_terminal_shows_what_it_can() {
        let stale = Some("cannot ask http://127.0.0.1:1".to_owned());
        let (cubes, jobs, events) = (Vec::new(), Vec::new(), Vec::new());
        let view = View { status: status(0), cubes, jobs, events, first: 7, stale };
        expect![[r#"
            pod  00:00:00  acts at observe  no answer: cannot ask http://127
            0 chips, 0 used (0.0 %), 0 out, 0 open cases
            jobs: none
            ┌ no cubes ────────────────────────────────────────────────────┐
            └──────────────────────────────────────────────────────────────┘
            ┌ 0 jobs that are not over ────────────────────────────────────┐
            └──────────────────────────────────────────────────────────────┘
            ┌ what happened, newest first ─────────────────────────────────┐
            └──────────────────────────────────────────────────────────────┘
        "#]]
        .assert_eq(&picture(&view, (64, 9)).unwrap());
        for size in [(1, 1), (200, 1), (3, 50)] {
            picture(&view, size).unwrap();
        }
    }

    #[test]
    fn every_cube_of_a_pod_is_in_sight_on_a_terminal_of_60_columns() {
        let view = |drained: u32| {
            let cube = |n| cube(n, &[n], if n == 5 { 8 } else { 64 }, "ok", n == drained);
            View {
                status: Status {
                    jobs: BTreeMap::from([("running".to_owned(), 64)]),
                    chips_used: 4096,
                    ..status(4096)
                },
                cubes: (0..64).map(cube).collect(),
                jobs: Vec::new(),
                events: Vec::new(),
                first: 0,
                stale: None,
            }
        };
        for size in [(60, 20), (66, 20), (80, 24), (200, 50)] {
            for drained in [0, 15, 30, 63] {
                let picture = picture(&view(drained), size).unwrap();
                assert!(picture.contains(&format!("{drained:>3}d")), "{size:?}\n{picture}");
                assert!(picture.contains("jobs: 64 running"), "{size:?}\n{picture}");
            }
        }
    }
}
