//! The result, as tables for people and as JSON for programs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::measure::{Case, Ratio, Row, Start};
use crate::process::LIMIT;
use crate::proxies::Kind;

/// What proxies are compared by.
const MEASURES: [&str; 3] = ["first_byte", "rate", "cpu"];

/// What is in the figures.
pub fn explanation() -> &'static str {
    "Growing sessions: each request is the last one plus an assistant's tool call and the
user's tool result, with the cache breakpoint on the newest block. The first request
of each session is sent before the clock runs; with \"unknown\" it is what is measured.

- first byte: from the first byte sent to the first byte of the answer, so it includes
  sending the body. req/s: whole exchanges, answers of 24 events read to their end.
- CPU: user and system time of all threads of the proxy for a request, with what it
  does after the answer, for up to 10 s; the load and the upstream are not in it. They share the cores
  with the proxy, which is in the times: see \"direct\".
- peak: highest resident memory during the timed requests. idle: after the last round.
- Longhaul's settings: off is policy.mode = \"off\"; default has no pass due; passes
  asks for one with every fortieth request (x-longhaul-compact: now), which makes about
  two, because a summary follows; it is asked of the same upstream. All of them log,
  record and archive as they do by default, into SQLite; log lines go to /dev/null.
  Their model has a window of 10 million tokens and cheap cache reads, so that no pass
  comes due by itself.
- nginx takes bodies in whole, in memory, and has its access log off. relay is hyper
  alone: it takes the body in whole, sends it on and streams the answer back.
- to nginx, to relay, to the first build: medians of the ratios within each round."
}

/// Prints the table of one case.
pub fn print(case: &Case, rows: &[Row]) {
    let rounds = rows[0].rounds.len();
    println!("\n### {}: {}, {rounds} rounds\n", case.name(), case.title());
    let has_builds = rows.iter().any(|row| first_build(rows, row).is_some());
    let (more, line) = if has_builds {
        (
            " to the first build: first byte | req/s | CPU |",
            "---|---|---|",
        )
    } else {
        ("", "")
    };
    println!(
        "| | first byte p50 | p90 | p99 | req/s | CPU | peak | idle | to nginx: first byte | req/s | CPU | to relay: first byte | req/s | CPU |{more}"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|{line}");
    for row in rows {
        let mut cells = vec![row.kind.name()];
        cells.extend([50, 90, 99].map(|percent| ms(row.percentile(percent))));
        cells.push(format!("{:.0}", row.median(|round| round.rate)));
        if row.kind == Kind::Direct {
            cells.extend(["", "", ""].map(str::to_owned));
        } else {
            let cpu = Duration::from_secs_f64(row.median(|round| round.cpu).max(0.0));
            cells.push(ms(cpu));
            cells.extend([row.peak, row.resident].map(megabytes));
        }
        let nginx = find(rows, &Kind::Nginx);
        let relay = find(rows, &Kind::Relay);
        let mut others = vec![nginx, relay];
        if has_builds {
            others.push(first_build(rows, row));
        }
        for other in others {
            for name in MEASURES {
                let applies = other.filter(|_| name != "cpu" || row.kind != Kind::Direct);
                let ratio = applies.map(|other| ratio(row, other, name).median);
                let ratio = ratio.filter(|ratio| ratio.is_finite());
                cells.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
            }
        }
        println!("| {} |", cells.join(" | "));
    }
    for row in rows.iter().filter(|row| is_unfinished(row)) {
        println!(
            "\n{} was still busy {} s after the last answer: its CPU is not all of it.",
            row.kind.name(),
            LIMIT.as_secs()
        );
    }
    for row in rows.iter().filter(|row| row.passes > 0) {
        let count = row.first_bytes.len();
        println!(
            "\n{}: {} passes in {count} requests.",
            row.kind.name(),
            row.passes
        );
    }
}

/// Whether work was left after an answer that was not waited for.
fn is_unfinished(row: &Row) -> bool {
    row.busy_after + Duration::from_secs(1) > LIMIT
}

/// Writes the JSON.
pub fn write(file: &Path, results: &[(&Case, Vec<Row>)]) {
    let cases: Vec<Value> = results
        .iter()
        .map(|(case, rows)| {
            let growth = match case.start {
                Start::Known { growth, .. } => Some(growth),
                Start::Unknown => None,
            };
            json!({
                "name": case.name(), "title": case.title(), "size": case.size,
                "growth": growth, "connections": case.connections,
                "proxies": rows.iter().map(|row| proxy(rows, row)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let all = json!({"cores": cores, "included": explanation(), "cases": cases});
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, serde_json::to_string_pretty(&all).unwrap()).unwrap();
}

fn proxy(rows: &[Row], row: &Row) -> Value {
    let (build, setting) = match &row.kind {
        Kind::Longhaul { build, setting, .. } => (Some(build), Some(setting.name())),
        _ => (None, None),
    };
    let rounds = row.rounds.iter().map(|round| {
        json!({"first_byte_ms": round.first_byte.as_secs_f64() * 1e3, "requests_per_second": round.rate, "cpu_ms": round.cpu * 1e3})
    });
    let ratios = |other: Option<&Row>| {
        other.map(|other| {
            let ratios = MEASURES.map(|name| {
                let Ratio { median, low, high } = ratio(row, other, name);
                (
                    name.to_owned(),
                    json!({"median": median, "low": low, "high": high}),
                )
            });
            Value::Object(ratios.into_iter().collect())
        })
    };
    json!({
        "name": row.kind.name(), "build": build, "setting": setting,
        "requests": row.first_bytes.len(), "passes": row.passes,
        "first_byte_ms": {
            "p50": row.percentile(50).as_secs_f64() * 1e3,
            "p90": row.percentile(90).as_secs_f64() * 1e3,
            "p99": row.percentile(99).as_secs_f64() * 1e3,
        },
        "requests_per_second": row.median(|round| round.rate),
        "cpu_ms": row.median(|round| round.cpu) * 1e3,
        "peak_bytes": row.peak, "resident_bytes": row.resident,
        "written_bytes": row.written, "unfinished": is_unfinished(row), "busy_after_ms": row.busy_after.as_secs_f64() * 1e3,
        "to_nginx": ratios(find(rows, &Kind::Nginx)),
        "to_relay": ratios(find(rows, &Kind::Relay)),
        "to_first_build": ratios(first_build(rows, row)),
        "rounds": rounds.collect::<Vec<_>>(),
    })
}

fn ratio(row: &Row, other: &Row, measure: &str) -> Ratio {
    match measure {
        "first_byte" => row.ratio(other, |round| round.first_byte.as_secs_f64()),
        "rate" => row.ratio(other, |round| round.rate),
        _ => row.ratio(other, |round| round.cpu),
    }
}

fn find<'a>(rows: &'a [Row], kind: &Kind) -> Option<&'a Row> {
    rows.iter().find(|row| row.kind == *kind)
}

/// The first build with the same setting, if this is another one.
fn first_build<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    let Kind::Longhaul { build, setting, .. } = &row.kind else {
        return None;
    };
    let same =
        |other: &&Row| matches!(&other.kind, Kind::Longhaul { setting: its, .. } if its == setting);
    let first = rows.iter().find(same)?;
    let is_other = matches!(&first.kind, Kind::Longhaul { build: its, .. } if its != build);
    is_other.then_some(first)
}

fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
