//! The queries of the dashboard and of the rules, held against what is exported.
//! It needs no Prometheus, so it holds where there is none.

use std::collections::BTreeSet;

use longhaul::metrics::Metrics;
use serde_json::Value;

use super::contract::METRICS;
use super::exposition::{base, families};

const DASHBOARD: &str = include_str!("../../../docker/grafana/dashboards/longhaul.json");
const RULES: &str = include_str!("../../../docker/prometheus/rules.yml");
const RULES_TEST: &str = include_str!("../../../docker/prometheus/rules_test.yml");

/// A panel's title and its queries.
pub fn panels() -> Vec<(String, Vec<String>)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    panels
        .iter()
        .map(|panel| {
            let targets = panel["targets"].as_array().unwrap();
            let queries = targets.iter().map(|target| text(&target["expr"]));
            (text(&panel["title"]), queries.collect())
        })
        .collect()
}

/// Names of alerts in a file of rules or of their tests.
fn alerts(file: &'static str, key: &str) -> Vec<&'static str> {
    let lines = file.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix(key)).collect()
}

/// A metric in a query, with what is asked of its labels.
struct Selector<'a> {
    name: &'a str,
    matchers: Vec<(&'a str, &'a str)>,
}

fn selectors(text: &str) -> Vec<Selector<'_>> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let places = text.match_indices("longhaul_").map(|(at, _)| &text[at..]);
    places
        .map(|rest| {
            let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let pairs = inside.map_or("", |(inside, _)| inside).split(',');
            let matcher = |pair: &'_ str| -> Option<(usize, usize)> {
                let name = pair.find(|letter| !is_name(letter))?;
                Some((name, pair.find('"')? + 1))
            };
            let matchers = pairs
                .map(str::trim)
                .filter_map(|pair| {
                    let (name, value) = matcher(pair)?;
                    Some((&pair[..name], pair[value..].trim_end_matches('"')))
                })
                .collect();
            Selector { name, matchers }
        })
        .collect()
}

/// What `by (...)` groups by.
fn groups(text: &str) -> BTreeSet<&str> {
    let lists = text.split("by (").skip(1);
    let lists = lists.filter_map(|rest| Some(rest.split_once(')')?.0));
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .collect()
}

/// Labels that Prometheus itself adds.
const ADDED: [&str; 2] = ["instance", "job"];

#[track_caller]
fn assert_answerable(query: &str) {
    let known = |name: &str| {
        let bare = name.strip_prefix("longhaul_").unwrap_or(name);
        METRICS.iter().find(|(name, ..)| *name == bare)
    };
    let page = Metrics::new().unwrap().render().unwrap();
    let exported = families(&page);
    let mut labels: BTreeSet<&str> = ADDED.into();
    for Selector { name, matchers } in selectors(query) {
        let metric = base(name, |name| known(name).is_some());
        let (_, kind, has) = known(metric).unwrap_or_else(|| panic!("{name}: {query}"));
        assert_eq!(metric != name, *kind == "histogram", "{name}: {query}");
        labels.extend(has.iter().map(|(label, _)| *label));
        if name.ends_with("_bucket") {
            labels.insert("le");
        }
        for (label, wanted) in matchers {
            if ADDED.contains(&label) {
                continue;
            }
            if label == "le" {
                let bounds = exported[metric].values("le");
                assert!(bounds.contains(wanted), "{name} le={wanted}: {query}");
                continue;
            }
            let values = has.iter().find(|(name, _)| *name == label);
            let (_, values) = values.unwrap_or_else(|| panic!("{name} {label}: {query}"));
            for value in wanted.split('|') {
                assert!(values.allow(value), "{name} {label}={value}: {query}");
            }
        }
    }
    for label in groups(query) {
        assert!(labels.contains(label), "by {label}: {query}");
    }
}

#[test]
fn the_dashboard_asks_only_for_what_is_exported() {
    let panels = panels();
    assert!(panels.len() >= 12);
    for (title, queries) in &panels {
        assert!(!queries.is_empty(), "{title}");
        for query in queries {
            assert!(!selectors(query).is_empty(), "{title}: {query}");
            assert_answerable(query);
        }
    }
    let variable = DASHBOARD.split("label_values(").nth(1).unwrap();
    assert_answerable(variable.split_once(',').unwrap().0);
}

#[test]
fn the_rules_and_their_tests_ask_only_for_what_is_exported() {
    for rule in RULES.split("- alert:").skip(1) {
        assert_answerable(rule.split_once("annotations:").unwrap().0);
    }
    // What the annotations send people to look at must exist as well.
    for Selector { name, .. } in selectors(RULES) {
        let known = |name: &str| {
            let bare = name.strip_prefix("longhaul_");
            METRICS.iter().any(|(known, ..)| Some(*known) == bare)
        };
        assert!(known(base(name, known)), "{name}");
    }
    let series = RULES_TEST.lines().filter(|line| line.contains("series:"));
    for line in series {
        assert_answerable(line);
    }
}

#[test]
fn every_alert_is_seen_to_fire_and_to_resolve() {
    let tested = alerts(RULES_TEST, "alertname: ");
    for alert in alerts(RULES, "- alert: ") {
        let expectations = RULES_TEST.split("alertname: ").skip(1);
        let own: Vec<bool> = expectations
            .filter(|text| text.lines().next() == Some(alert))
            .map(|text| text.lines().nth(1).unwrap().ends_with("[]"))
            .collect();
        // Quiet, then loud, then quiet again.
        assert!(
            own.windows(3).any(|three| three == [true, false, true]),
            "{alert}: {own:?}"
        );
        assert!(tested.contains(&alert));
    }
    for alert in tested {
        assert!(alerts(RULES, "- alert: ").contains(&alert), "{alert}");
    }
}
