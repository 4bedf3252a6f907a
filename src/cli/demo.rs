//! `longhaul demo`: a long session with Longhaul and without, to watch.
//!
//! On a terminal it is drawn as it happens, elsewhere told in lines; both end
//! with a table and a picture. Client, proxy and simulated API are this process:
//! nothing is sent anywhere, nothing is configured, and nothing is left behind
//! but the picture.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::config::Sources;
use crate::demo::frame::{self, SMALLEST};
use crate::demo::lines::Lines;
use crate::demo::scene::Scene;
use crate::demo::{MODEL, day, table};
use crate::engine::numerals::grouped;
use crate::replay::all::Plan;
use crate::replay::play::Seen;
use crate::replay::report::{Report, svg};
use crate::replay::settings::Settings;

/// How often a frame is drawn.
const OFTEN: Duration = Duration::from_millis(80);

/// Arguments of `longhaul demo`.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Turns of the session
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub turns: u32,
    /// What the session is made from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Window in tokens, instead of the model's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(20_000..))]
    pub window: Option<u64>,
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value = "longhaul-demo.svg")]
    pub svg: PathBuf,
}

/// Plays it.
pub fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let session = day::session(args.seed, args.turns as usize);
    let plan = Plan {
        settings: Settings::new(MODEL, args.window, None, Sources::default())?,
        sessions: vec![session.clone()],
        variations: Vec::new(),
    };
    let window = plan.settings.window;
    let turns = if args.turns == 1 { "turn" } else { "turns" };
    say(&format!(
        "{} {turns} of a coding agent on {MODEL}, window {} tokens.\n\
         The proxy is real; the API is simulated. No key, no network.\n",
        args.turns,
        grouped(window)
    ))?;
    let show = Show {
        state: Mutex::new(State {
            scene: Scene::new(day::turns(&session), window),
            lines: Lines::default(),
            drawn: None,
        }),
        canvas: canvas(),
    };
    let told = plan.play(&|_| false, &|way, seen| show.note(way, seen))?;
    let scene = show.end();
    let Some(told_of_it) = told.first() else {
        anyhow::bail!("nothing was played");
    };
    if let Some(text) = table::table(&scene, told_of_it) {
        say(&format!("\n{text}"))?;
    }
    let report = Report {
        model: MODEL,
        window,
        conditions: &plan.conditions()?,
        pause: 0.0,
        variations: &[],
        aims: 0,
        told: &told,
    };
    let path = &args.svg;
    let written = std::fs::write(path, svg(&report));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("Drawn in {}.", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output. Whoever reads may stop before the end.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Where frames are drawn.
#[derive(Clone, Copy)]
struct Canvas {
    columns: usize,
    colours: bool,
}

/// The terminal, where frames can be drawn on it.
fn canvas() -> Option<Canvas> {
    let out = std::io::stdout();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    if !out.is_terminal() || dumb {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    let fits = columns >= SMALLEST.0 && rows >= SMALLEST.1;
    let colours = !is_set("NO_COLOR");
    fits.then_some(Canvas { columns, colours })
}

/// What is shown, while it happens.
struct Show {
    state: Mutex<State>,
    canvas: Option<Canvas>,
}

struct State {
    scene: Scene,
    lines: Lines,
    /// When a frame was drawn last, and how many lines it had.
    drawn: Option<(Instant, usize)>,
}

impl Show {
    fn note(&self, way: usize, seen: &Seen) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.scene.note(way, seen);
        match self.canvas {
            None => state.tell(),
            Some(canvas) if state.drawn.is_none_or(|(at, _)| at.elapsed() >= OFTEN) => {
                state.draw(canvas);
            }
            Some(_) => {}
        }
    }

    fn end(self) -> Scene {
        let mut state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(canvas) = self.canvas {
            state.draw(canvas);
        }
        state.scene
    }
}

impl State {
    // Whoever does not look any more needs no picture: what fails here is left.
    fn tell(&mut self) {
        for line in self.lines.news(&self.scene) {
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    fn draw(&mut self, canvas: Canvas) {
        let lines = frame::frame(&self.scene, canvas.columns, canvas.colours);
        let before = self.drawn.map_or(0, |(_, lines)| lines);
        let text = frame::draw(&lines, before);
        let mut out = std::io::stdout().lock();
        // In one piece, so that an interrupt leaves no colour on.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.drawn = Some((Instant::now(), lines.len()));
    }
}
