//! What a summarizer costs that never gives anything usable: next to nothing.
//!
//! A session is played on a small window, with default settings but for the
//! window and with clearing on or off, while everything that is asked for a
//! summary goes wrong in one way. It must come to its end, and must not cost
//! noticeably more than the same session without a proxy on a window without
//! end. A usual run plays one way to fail on two windows; `LONGHAUL_ECONOMY=all` every one.

use longhaul::sim::Persona;

use super::play::Stage;
use super::policy::Policy;
use super::session;
use super::setting::{Setting, failing};

/// Every way to fail. `Hanging` only waits, and costs nothing.
const ALL: [Persona; 9] = [
    Persona::Forgetful,
    Persona::Empty,
    Persona::Malformed,
    Persona::CutOff,
    Persona::InventingPaths,
    Persona::CallsTool,
    Persona::RateLimited,
    Persona::ServerError,
    Persona::ContextExceeded,
];
const FEW: [Persona; 1] = [Persona::Malformed];

/// Windows, and whether results are cleared there.
const WINDOWS: [(u64, bool); 4] = [
    (32_000, true),
    (200_000, false),
    (200_000, true),
    (32_000, false),
];

/// In percent of what the session costs without a proxy.
const MOST: u64 = 105;

#[test]
fn a_summarizer_that_always_fails_costs_next_to_nothing() {
    let thorough = std::env::var("LONGHAUL_ECONOMY").is_ok_and(|part| part == "all");
    let personas: &[Persona] = if thorough { &ALL } else { &FEW };
    let session = session::wordy(51, 120, 250_000);
    let stage = Stage::new();
    let mut too_expensive = Vec::new();
    println!("  | persona | window | clearing | calls | for them | share of the cost without |");
    let windows = if thorough {
        &WINDOWS[..]
    } else {
        &WINDOWS[..2]
    };
    for (window, clearing) in windows.iter().copied() {
        let setting: Setting = failing(clearing);
        let none = stage.play(&session, Policy::None, &setting);
        let without = none.cost(setting.model).micro_dollars();
        for persona in personas {
            stage.set_persona(*persona);
            let run = stage.play(&session, Policy::Longhaul(window), &setting);
            stage.set_persona(Persona::Good);
            let cost = run.cost(setting.model).micro_dollars();
            let share = cost * 100 / without.max(1);
            let line = format!(
                "  | {persona:?} | {window} | {clearing} | {} | {} | {share}% |",
                run.summaries,
                run.summing_up.micro_dollars(),
            );
            println!("{line}");
            assert!(run.summaries > 0, "nothing was asked for: {line}");
            if share > MOST {
                too_expensive.push(line);
            }
        }
    }
    assert!(too_expensive.is_empty(), "{too_expensive:#?}");
}
