//! The ways a summary can fail, and what is done about each: who is called how
//! often, what the second attempt is told, what is counted, what comes of it.

use longhaul::sim::{Entry, Fault, Options, Persona, Queued, Target};

use super::stage::{LEFT_OUT, Stage};

const SUMMARIZER: &str = "claude-haiku-5-5";
const SUMMARY: &str = "[longhaul: summary of messages";

/// Talks until a summary has been asked for, and that has ended.
fn asked(stage: &mut Stage) {
    for _ in 0..24 {
        stage.talks(1, 1_500);
        if stage.begins() {
            stage.lands();
            return;
        }
    }
    panic!("no summary was asked for: {:?}", stage.sizes);
}

/// Goes on until the view has a summary.
fn summed_up(stage: &mut Stage) {
    for _ in 0..16 {
        stage.talks(1, 1_500);
        stage.lands();
        if stage.text().contains(SUMMARY) {
            break;
        }
    }
    stage.assert_accepted();
    let text = stage.text();
    assert!(
        text.contains(SUMMARY) && !text.contains(LEFT_OUT),
        "{:?}",
        stage.passes
    );
}

fn models(stage: &Stage) -> Vec<String> {
    let summaries = stage.summaries().into_iter();
    summaries.filter_map(|entry| entry.model).collect()
}

fn body(entry: &Entry) -> String {
    entry.json().unwrap().to_string()
}

fn failed(stage: &Stage, reason: &str) -> i64 {
    stage.number(&format!("summarizer_failures_total{{reason=\"{reason}\"}}"))
}

/// One that cannot be reached is asked again, then another is.
fn asked_again(fail: impl Fn(&Stage)) {
    let settings = "mode = \"model\"\ntimeout = \"20s\"";
    let mut stage = Stage::small(Options::default(), settings);
    fail(&stage);
    asked(&mut stage);
    let own = stage.agent.model.clone();
    let expected = [SUMMARIZER, SUMMARIZER, SUMMARIZER, &own];
    assert_eq!(models(&stage), expected);
    assert_eq!(failed(&stage, "upstream"), 3);
    assert_eq!(stage.sum("summarizer_failures_total"), 3);
    summed_up(&mut stage);
}

#[test]
fn a_rate_limited_summarizer_is_asked_again_then_the_fallback() {
    asked_again(|stage| (0..3).for_each(|_| stage.upstream.sim.push_persona(Persona::RateLimited)));
}

#[test]
fn a_failing_or_overloaded_summarizer_is_asked_again_then_the_fallback() {
    use Persona::{Overloaded, ServerError};
    asked_again(|stage| {
        let personas = [ServerError, Overloaded, ServerError];
        let sim = &stage.upstream.sim;
        for persona in personas {
            sim.push_persona(persona);
        }
    });
}

#[test]
fn an_unreachable_summarizer_is_asked_again_then_the_fallback() {
    asked_again(|stage| {
        stage.upstream.sim.queue_fault(Queued {
            fault: Fault::Reset,
            target: Target::Summary,
            times: 3,
        });
    });
}

#[test]
fn a_summarizer_that_says_when_to_ask_again_is_asked_then() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"";
    let mut stage = Stage::small(Options::default(), settings);
    stage.upstream.sim.queue_fault(Queued {
        fault: Fault::parse("429:1").unwrap(),
        target: Target::Summary,
        times: 1,
    });
    asked(&mut stage);
    assert_eq!(models(&stage), [SUMMARIZER, SUMMARIZER]);
    summed_up(&mut stage);
}

#[test]
fn one_that_does_not_answer_in_time_is_left_for_the_fallback() {
    let settings = "mode = \"model\"\ntimeout = \"2s\"";
    let mut stage = Stage::small(Options::default(), settings);
    stage.upstream.sim.push_persona(Persona::Hanging);
    asked(&mut stage);
    assert_eq!(models(&stage), [SUMMARIZER, &stage.agent.model]);
    assert_eq!(failed(&stage, "timeout"), 1);
    assert_eq!(stage.sum("summarizer_failures_total"), 1);
    summed_up(&mut stage);
}

/// A summary that is no good is asked for once more, and told why; if that is no
/// good either, it is a failure.
fn repaired(persona: Persona, reason: &str, told: &[&str]) {
    let settings = "mode = \"model\"\ntimeout = \"20s\"";
    let mut stage = Stage::small(Options::default(), settings);
    stage.upstream.sim.push_persona(persona);
    asked(&mut stage);
    assert_eq!(models(&stage), [SUMMARIZER, SUMMARIZER], "{persona:?}");
    let summaries = stage.summaries();
    assert!(!body(&summaries[0]).contains("An earlier answer"));
    let second = body(&summaries[1]);
    for told in told
        .iter()
        .chain(&["An earlier answer to this was not accepted"])
    {
        assert!(second.contains(told), "{persona:?}: {told}");
    }
    assert_eq!(failed(&stage, reason), 1, "{persona:?}");
    assert_eq!(stage.sum("summarizer_failures_total"), 1, "{persona:?}");
    summed_up(&mut stage);

    let mut stage = Stage::small(Options::default(), settings);
    stage.persona(persona);
    asked(&mut stage);
    assert_eq!(models(&stage), [SUMMARIZER, SUMMARIZER], "{persona:?}");
    assert_eq!(failed(&stage, reason), 2, "{persona:?}");
    stage.upstream.sim.set_persona(Persona::Good);
    assert!(!stage.text().contains(SUMMARY));
    summed_up(&mut stage);
}

#[test]
fn a_malformed_summary_is_repaired_once() {
    repaired(
        Persona::Malformed,
        "malformed",
        &["one complete JSON object"],
    );
}

#[test]
fn a_summary_without_words_is_repaired_once() {
    // So it is when reasoning has eaten the budget.
    repaired(Persona::Empty, "malformed", &["one complete JSON object"]);
}

#[test]
fn a_summary_that_was_cut_off_is_repaired_once() {
    repaired(
        Persona::CutOff,
        "malformed",
        &["be brief enough to reach the end"],
    );
}

#[test]
fn a_summary_that_says_nothing_is_told_where() {
    let told = ["it says nothing in", "session_intent", "fill them"];
    repaired(Persona::Forgetful, "empty_fields", &told);
}

#[test]
fn a_summary_that_invents_names_is_told_which() {
    let told = [
        "/opt/imaginary/never_mentioned.rs",
        "src/invented/by_the_summarizer.rs",
        "does not occur",
    ];
    repaired(Persona::InventingPaths, "not_verbatim", &told);
}

#[test]
fn a_span_too_long_for_the_summarizer_is_summed_up_in_parts_and_merged() {
    // The window in its refusal is smaller than the one in the table.
    let options = Options::default().with_window(SUMMARIZER, 9_000);
    let settings = "mode = \"model\"\ntimeout = \"20s\"\nmax_tokens = 1024";
    let mut stage = Stage::small(options, settings);
    asked(&mut stage);
    let summaries = stage.summaries();
    assert!(models(&stage).iter().all(|model| model == SUMMARIZER));
    let answered: Vec<bool> = summaries.iter().map(Entry::is_answered).collect();
    assert!(answered.len() >= 4, "{answered:?}");
    assert!(
        !answered[0] && answered[1..].iter().all(|it| *it),
        "{answered:?}"
    );
    assert!(body(summaries.last().unwrap()).contains("Part 2:"));
    assert_eq!(failed(&stage, "context_exceeded"), 1);
    assert_eq!(stage.sum("summarizer_failures_total"), 1);
    summed_up(&mut stage);
}

#[test]
fn one_whose_window_is_too_small_for_any_part_is_left_for_a_larger_one() {
    let options = Options::default().with_window(SUMMARIZER, 300);
    let settings = "mode = \"model\"\ntimeout = \"20s\"";
    let mut stage = Stage::small(options, settings);
    asked(&mut stage);
    let asked = models(&stage);
    // On a slow machine the next one may have begun meanwhile.
    let larger = asked.iter().position(|model| *model == stage.agent.model);
    let larger = larger.unwrap_or_else(|| panic!("{asked:?}"));
    assert!(stage.summaries()[larger].is_answered());
    assert!(failed(&stage, "context_exceeded") >= 2);
    summed_up(&mut stage);
}

#[test]
fn where_a_summary_is_not_enough_more_is_left_out_and_nobody_is_blamed() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"\ndeadline = \"200ms\"";
    let mut stage = Stage::small(Options::default(), settings);
    asked(&mut stage);
    let log = "And this is what the log says: it failed. ";
    for _ in 0..2 {
        stage.agent.user(&log.repeat(1_200));
        stage.ask("");
    }
    stage.assert_accepted();
    assert!(
        stage.passes.iter().any(|pass| pass.contains("truncate")),
        "{:?}",
        stage.passes
    );
    assert_eq!(stage.sum("summarizer_failures_total"), 0);
    assert_eq!(stage.sum("breaker_transitions_total"), 0);
    assert!(stage.sizes.iter().all(|size| *size < 32_000));
}

#[test]
fn a_fork_that_calls_a_tool_is_met_once_with_errors() {
    let settings = "mode = \"fork\"\ntimeout = \"20s\"";
    let mut stage = Stage::small(Options::default(), settings);
    stage.upstream.sim.push_persona(Persona::CallsTool);
    asked(&mut stage);
    let own = stage.agent.model.clone();
    // What it says then may have to be repaired: the simulated one takes the
    // instruction for a part of the story when it no longer stands last.
    assert!((2..=3).contains(&models(&stage).len()));
    let met = stage.summaries()[1].json().unwrap();
    let last = met["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"][0]["type"], "tool_result");
    assert_eq!(last["content"][0]["is_error"], true);
    assert_eq!(failed(&stage, "malformed"), 0);
    summed_up(&mut stage);

    // One that insists has failed like any other that is malformed.
    let mut stage = Stage::small(Options::default(), settings);
    stage.persona(Persona::CallsTool);
    asked(&mut stage);
    assert_eq!(models(&stage), [own.clone(), own.clone(), own.clone(), own]);
    assert_eq!(failed(&stage, "malformed"), 2);
    stage.persona(Persona::Good);
    summed_up(&mut stage);
}

#[test]
fn a_call_that_is_refused_for_good_goes_to_the_fallback_or_to_nobody() {
    let settings = "mode = \"model\"\ntimeout = \"20s\"";
    for (status, others) in [(404, 1), (401, 0), (403, 0)] {
        let mut stage = Stage::small(Options::default(), settings);
        stage.upstream.sim.queue_fault(Queued {
            fault: Fault::status(status),
            target: Target::Summary,
            times: 1,
        });
        asked(&mut stage);
        assert_eq!(models(&stage).len(), 1 + others, "{status}");
        assert_eq!(failed(&stage, "upstream"), 1);
        summed_up(&mut stage);
    }
}
