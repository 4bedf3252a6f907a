//! The control surface over HTTP, for tests in another process.
//!
//! Everything a test in the same process can do, under `/_sim/`. Lists may be
//! sent as one item or as an array.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::fault::{Fault, Queued, Target};
use super::persona::Persona;
use super::reply::Reply;
use super::respond::plain;
use super::rule::Rule;
use super::state::Sim;

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

impl<T> OneOrMany<T> {
    fn list(self) -> Vec<T> {
        match self {
            Self::Many(list) => list,
            Self::One(item) => vec![item],
        }
    }
}

/// A fault in short form, as itself, or with what it waits for.
#[derive(Deserialize)]
#[serde(untagged)]
enum FaultForm {
    Short(String),
    Queued(Queued),
    Plain(Fault),
}

/// A persona for good, or for the next call only.
#[derive(Deserialize)]
#[serde(untagged)]
enum PersonaForm {
    Always(Persona),
    Next { next: OneOrMany<Persona> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockForm {
    #[serde(default)]
    advance_ms: u64,
    #[serde(default)]
    freeze: bool,
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Box<Response>> {
    serde_json::from_slice(body).map_err(|error| {
        Box::new(plain(
            StatusCode::BAD_REQUEST,
            &json!({"error": format!("cannot read the body: {error}")}),
        ))
    })
}

fn done() -> Response {
    plain(StatusCode::OK, &json!({"ok": true}))
}

pub(super) async fn replies(State(sim): State<Sim>, body: Bytes) -> Response {
    match read::<OneOrMany<Reply>>(&body) {
        Ok(replies) => {
            replies
                .list()
                .into_iter()
                .for_each(|reply| sim.push_reply(reply));
            done()
        }
        Err(response) => *response,
    }
}

pub(super) async fn rule(State(sim): State<Sim>, body: Bytes) -> Response {
    match read::<Rule>(&body) {
        Ok(rule) => {
            sim.set_rule(rule);
            done()
        }
        Err(response) => *response,
    }
}

pub(super) async fn faults(State(sim): State<Sim>, body: Bytes) -> Response {
    let forms = match read::<OneOrMany<FaultForm>>(&body) {
        Ok(forms) => forms.list(),
        Err(response) => return *response,
    };
    for form in forms {
        let plainly = |fault| Queued {
            fault,
            target: Target::Any,
            times: 1,
        };
        let queued = match form {
            FaultForm::Queued(queued) => Some(queued),
            FaultForm::Plain(fault) => Some(plainly(fault)),
            FaultForm::Short(text) => Fault::parse(&text).map(plainly),
        };
        let Some(queued) = queued else {
            return plain(
                StatusCode::BAD_REQUEST,
                &json!({"error": "there is no such fault"}),
            );
        };
        sim.queue_fault(queued);
    }
    done()
}

pub(super) async fn persona(State(sim): State<Sim>, body: Bytes) -> Response {
    match read::<PersonaForm>(&body) {
        Ok(PersonaForm::Always(persona)) => sim.set_persona(persona),
        Ok(PersonaForm::Next { next }) => {
            next.list()
                .into_iter()
                .for_each(|persona| sim.push_persona(persona));
        }
        Err(response) => return *response,
    }
    done()
}

pub(super) async fn clock(State(sim): State<Sim>, body: Bytes) -> Response {
    match read::<ClockForm>(&body) {
        Ok(form) => {
            if form.freeze {
                sim.clock().freeze();
            }
            sim.clock().advance(Duration::from_millis(form.advance_ms));
            plain(
                StatusCode::OK,
                &json!({"now_ms": sim.clock().now().as_millis()}),
            )
        }
        Err(response) => *response,
    }
}

pub(super) async fn ledger(State(sim): State<Sim>) -> Response {
    match serde_json::to_value(sim.ledger()) {
        Ok(ledger) => plain(StatusCode::OK, &ledger),
        Err(error) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            &json!({"error": error.to_string()}),
        ),
    }
}

pub(super) async fn reset(State(sim): State<Sim>) -> Response {
    sim.reset();
    done()
}
