//! Plays a session, with the proxy or without, and notes what each request was.
//!
//! Client, simulator and proxy talk over the loopback interface, by one clock
//! that stands still but for the recorded pauses. What the assistant said comes
//! out of the simulator again, so that its thinking is signed for the view that
//! it was born under. What a request sets off in the background is over before
//! the next one is sent, as if no pause had been too short for it: so a replay
//! tells the same each time.

mod stored;

use std::collections::HashMap;
use std::sync::Arc;

use hyper_util::client::proxy::matcher::Matcher;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::around::Around;
use super::history::History;
use super::inserted::Bags;
use super::line::{Answer, Line};
use super::plant::{Plants, Shape};
use super::probes::Kind;
use super::quality::Quality;
use super::reach::Reach;
use super::recording::{blocks, is_thinking, said};
use super::session::{Session, Step};
use super::settings::{BadSettings, Set, Settings};
use super::watch::{Need, Watch};
use crate::app::{App, Quiet, StartError, Surroundings};
use crate::clock::{Clock, Moment};
use crate::engine::ids::ChainHash;
use crate::sim::prices::Tokens;
use crate::sim::tokens::Counter;
use crate::sim::{Entry, Options, Outcome, Sim};
use crate::store::{Memory, Store};

/// A window that nothing fills.
const UNLIMITED: u64 = 1_000_000_000;
/// When sessions are played that do not say when they happened.
const BEGINNING: u64 = 1_700_000_000_000;
/// Loopback listeners have one tenant, and this is its name.
const TENANT: &str = "";

/// Why a session cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The proxy does not start.
    #[error("the proxy does not start: {0}")]
    Start(#[from] StartError),
    /// The loopback interface fails.
    #[error("the loopback interface: {0}")]
    Io(#[from] std::io::Error),
}

/// How a session is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Without a proxy, on a window without end.
    Alone,
    /// With a proxy that has these keys set, on the model's own window.
    Through(Vec<Set>),
}

/// What a session is played with.
pub struct Stage<'a> {
    /// The session.
    pub session: &'a Session,
    /// The conditions.
    pub settings: &'a Settings,
    /// Counts tokens, for all runs together.
    pub counter: Arc<Counter>,
    /// The requests with which a pass is asked for.
    pub forced: &'a (dyn Fn(usize) -> bool + Sync),
    /// Called after each request.
    pub progress: &'a (dyn Fn(&Seen) + Sync),
}

/// A request that has just been answered, as far as that is known by then.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Which one of its run.
    pub request: usize,
    /// Tokens by class.
    pub tokens: Tokens,
    /// What was spent since the request before, on summaries too.
    pub dollars: f64,
    /// What the pass did that was made with it.
    pub pass: Vec<String>,
}

/// One request of a run.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// A history begins with it.
    pub fresh: bool,
    /// Tokens by class.
    pub tokens: Tokens,
    /// What it cost.
    pub dollars: f64,
    /// What was spent on summaries since the request before.
    pub summaries: f64,
    /// Everything that was spent from the end of the request before to the end of
    /// what this one set off in the background.
    pub spent: f64,
    /// Each request for them: the model that was asked, and tokens by class.
    pub summarized: Vec<(String, Tokens)>,
    /// The prompt departs from the one before it.
    pub broken: bool,
    /// What the pass did that was made with it.
    pub pass: Vec<String>,
}

/// A probe and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// What kind of thing was needed.
    pub kind: Kind,
    /// How many passes there had been.
    pub passes: usize,
    /// How it was planted, if it was.
    pub shape: Option<Shape>,
    /// The view had it.
    pub in_view: bool,
    /// The view had it in the line it comes from, and said where that is.
    pub in_line: bool,
    /// The view had it, or it could be fetched.
    pub reachable: bool,
    /// Bags of names as long as what was put in would have had it.
    pub bags: Bags,
}

/// A session that was played.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Its requests.
    pub played: Vec<Played>,
    /// What was refused, if it did not come to its end.
    pub refused: Option<String>,
    /// Probes, in order.
    pub probes: Vec<Probe>,
    /// How many things passes removed, and how many of them were fetched again.
    pub rereads: (usize, usize),
    /// What views were judged by beside probes.
    pub quality: Quality,
    /// Of what the session asks for, in its order, whether the view had it.
    pub asks: Vec<bool>,
    /// Of each pass, the tokens that its request was expected to write into the
    /// cache, and those that it wrote.
    pub writes: Vec<(u64, u64)>,
    /// Tokens beyond which a view must be made smaller.
    pub hard_at: u64,
}

/// A run as it is played.
struct Playing<'a> {
    stage: &'a Stage<'a>,
    sim: &'a Sim,
    around: Around,
    plants: Plants,
    history: History,
    watch: Watch,
    /// The proxy's store, and what can be fetched from there.
    store: Option<(Arc<dyn Store>, Reach)>,
    passes: usize,
    /// Where the requests end for which a pass was made.
    passed: Vec<ChainHash>,
    /// What each request was answered with, and its pass.
    answered: Vec<(String, Vec<String>)>,
    /// What was spent with each.
    spent: Vec<f64>,
    /// Entries of the ledger that have been looked at.
    billed: usize,
    run: Run,
}

impl Stage<'_> {
    /// Plays the session to its end, or to the first request that is refused.
    pub async fn play(&self, way: &Way) -> Result<Run, PlayError> {
        let clock = Clock::frozen(Moment::at_millis(BEGINNING));
        let window = match way {
            Way::Alone => UNLIMITED,
            Way::Through(_) => self.settings.window,
        };
        let options = Options {
            keep_bodies: false,
            body_limit: usize::MAX,
            clock: clock.clone(),
            ..Options::default()
        };
        let options = options.with_window(&self.settings.model, window);
        let sim = Sim::counting(options, self.counter.clone()).run().await?;
        let around = Around::new(self.session, &self.settings.model, self.settings.window);
        let mut playing = Playing {
            stage: self,
            sim: &sim,
            history: History::new(around.mark.clone(), around.marks),
            around,
            plants: Plants::new(self.session),
            watch: Watch::default(),
            store: None,
            passes: 0,
            passed: Vec::new(),
            answered: Vec::new(),
            spent: Vec::new(),
            billed: 0,
            run: Run::default(),
        };
        let Way::Through(set) = way else {
            let line = Line::connect(sim.address()).await?;
            playing.through(line, None).await?;
            return Ok(playing.end());
        };
        let config = self.settings.confined(set, sim.address())?;
        playing.run.hard_at = self.settings.hard_at(&config);
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let reach = Reach::new(store.clone()).map_err(StartError::from)?;
        playing.store = Some((store.clone(), reach));
        let around = [&self.session.system, &self.session.tools];
        let around = around.into_iter().flatten();
        around.for_each(|value| playing.watch.always(value));
        let surroundings = Surroundings {
            admin_token: None,
            summarizer_key: None,
            proxies: Matcher::builder().build(),
            clock,
        };
        let app = App::start_on(store, &config, surroundings).await?;
        let (address, quiet) = (app.address(), app.quiet());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = app.run(async { drop(stopped.await) });
        let talking = async {
            let line = Line::connect(address).await?;
            let talked = playing.through(line, Some(&quiet)).await;
            drop(stop);
            talked
        };
        let ((), talked) = tokio::join!(serving, talking);
        talked?;
        playing.note_writes().await;
        Ok(playing.end())
    }
}

impl Playing<'_> {
    async fn through(&mut self, mut line: Line, quiet: Option<&Quiet>) -> std::io::Result<()> {
        for (at, step) in self.stage.session.steps.iter().enumerate() {
            self.sim.clock().advance(step.pause);
            if step.fresh {
                self.history.clear();
                self.watch.begins();
            }
            self.hear(self.plants.sown(at, &step.asked));
            self.sim.push_reply(said(&step.answer, false));
            let body = self.around.body(&self.history.write());
            let wish: &[(&str, &str)] = match quiet {
                Some(_) if (self.stage.forced)(at) => &[("x-longhaul-compact", "now")],
                _ => &[],
            };
            // Looked at again only where there may be an overlay.
            let kept = quiet.map(|_| body.clone());
            let answer = line.post(body, wish).await?;
            self.sim.drop_replies();
            if let Some(quiet) = quiet {
                quiet.wait().await;
            }
            if !answer.status.is_success() {
                let why = String::from_utf8_lossy(&answer.body).into_owned();
                self.run.refused = Some(format!("{} {why}", answer.status.as_u16()));
                break;
            }
            self.answered(at, step, &answer, kept).await;
            let seen = self.seen(at);
            self.spent.push(seen.dollars);
            (self.stage.progress)(&seen);
        }
        Ok(())
    }

    /// What is known of the request that was answered last.
    fn seen(&mut self, request: usize) -> Seen {
        let entries = self.sim.entries_from(self.billed);
        self.billed += entries.len();
        let last = self.answered.last();
        let id = last.map(|(id, _)| id.as_str());
        let own = entries.iter().find(|it| it.message_id.as_deref() == id);
        Seen {
            request,
            tokens: own.map(|entry| entry.tokens).unwrap_or_default(),
            dollars: entries.iter().map(dollars).sum(),
            pass: last.map(|(_, pass)| pass.clone()).unwrap_or_default(),
        }
    }

    async fn answered(&mut self, at: usize, step: &Step, answer: &Answer, body: Option<Vec<u8>>) {
        let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let pass: Vec<String> = match answer.header("x-longhaul-compaction") {
            "" | "none" => Vec::new(),
            kinds => kinds.split('+').map(str::to_owned).collect(),
        };
        if let (false, Some(body)) = (pass.is_empty(), body) {
            self.passes += usize::from(pass != ["trim"]);
            if let Some((here, overlay, gone)) = self.overlay(&body).await {
                self.watch.passed(overlay, gone);
                self.watch.judge_pass(self.passes);
                self.passed.push(here);
            }
        }
        let mut needs = self.watch.needs(&step.answer);
        let planted = self.plants.due(at);
        needs.extend(planted.filter_map(|(fact, shape)| self.watch.planted(fact, shape)));
        self.note(needs).await;
        self.watch.judge_answer(&step.answer, self.passes);
        let asks = step.asks.iter();
        let seen = asks.map(|ask| self.watch.has(ask).unwrap_or(false));
        self.run.asks.extend(seen);
        self.watch.fetches(&step.answer);
        let id = reply.get("id").and_then(Value::as_str).unwrap_or_default();
        self.answered.push((id.to_owned(), pass));
        self.hear(heard(step, &reply));
    }

    fn hear(&mut self, message: Value) {
        if self.store.is_some() {
            self.watch.heard(self.history.len(), &message);
        }
        self.history.push(message);
    }

    async fn note(&mut self, needs: Vec<Need>) {
        let Some((_, reach)) = &mut self.store else {
            return;
        };
        for need in needs {
            let overlay = self.watch.overlay();
            let reachable = need.in_view || reach.reaches(&need, overlay).await;
            self.run.probes.push(Probe {
                kind: need.kind,
                passes: self.passes,
                shape: need.shape,
                in_view: need.in_view,
                in_line: need.in_line,
                reachable,
                bags: need.bags,
            });
        }
    }

    /// The run, with what the simulator billed.
    fn end(mut self) -> Run {
        let entries = self.sim.ledger().entries;
        let ids = self.answered.iter().map(|(id, _)| id.as_str());
        let numbers: HashMap<&str, usize> = ids.zip(0..).collect();
        let steps = self.stage.session.steps.iter();
        let mut played: Vec<Played> = self
            .answered
            .iter()
            .zip(steps)
            .zip(&self.spent)
            .map(|(((_, pass), step), spent)| Played {
                fresh: step.fresh,
                pass: pass.clone(),
                spent: *spent,
                ..Played::default()
            })
            .collect();
        let last = played.len().saturating_sub(1);
        let mut next = 0;
        for entry in &entries {
            let id = entry.message_id.as_deref();
            if let Some(number) = id.and_then(|id| numbers.get(id)) {
                next = number + 1;
                if let Some(played) = played.get_mut(*number) {
                    played.tokens = entry.tokens;
                    played.dollars = dollars(entry);
                    played.broken = entry.broken_at.is_some();
                }
            } else if let Some(played) = played.get_mut(next.min(last)) {
                played.summaries += dollars(entry);
                if entry.tokens != Tokens::default() {
                    let model = entry.model.clone().unwrap_or_default();
                    played.summarized.push((model, entry.tokens));
                }
            }
        }
        if self.run.refused.is_some() {
            let refusal = entries.iter().rev().find_map(|entry| match &entry.outcome {
                Outcome::Refused { message, .. } => Some(message.clone()),
                _ => None,
            });
            self.run.refused = refusal.or(self.run.refused);
        }
        self.run.played = played;
        self.run.rereads = self.watch.rereads();
        self.run.quality = self.watch.quality();
        self.run
    }
}

/// What the client keeps of an answer: the simulator's own words, because it has
/// signed them, unless it took the request for one of another kind.
fn heard(step: &Step, reply: &Value) -> Value {
    let spoken = |message: &Value| {
        let mut blocks = blocks(message);
        blocks.retain(|block| !is_thinking(block));
        blocks
    };
    if spoken(reply) == spoken(&json!({"content": said(&step.answer, false).content})) {
        return json!({"role": "assistant", "content": reply.get("content")});
    }
    let mut recorded = spoken(&step.answer);
    if recorded.is_empty() {
        recorded.push(json!({"type": "text", "text": "…"}));
    }
    json!({"role": "assistant", "content": recorded})
}

#[allow(
    clippy::cast_precision_loss,
    reason = "amounts of money are far below 2^52"
)]
fn dollars(entry: &Entry) -> f64 {
    entry.cost.micro_dollars() as f64 / 1e6
}
