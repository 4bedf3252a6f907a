//! The text that Prometheus reads, taken apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Client, Proxy, text};

/// A metric, with all its series.
#[derive(Debug, Default)]
pub struct Family {
    pub kind: String,
    pub help: String,
    pub series: Vec<BTreeMap<String, String>>,
}

impl Family {
    /// The names of its labels, without those of the format itself.
    pub fn labels(&self) -> BTreeSet<&str> {
        let names = self.series.iter().flat_map(BTreeMap::keys);
        names
            .map(String::as_str)
            .filter(|name| *name != "le")
            .collect()
    }

    /// Every value of a label.
    pub fn values(&self, label: &str) -> BTreeSet<&str> {
        let series = self.series.iter();
        series
            .filter_map(|labels| labels.get(label))
            .map(String::as_str)
            .collect()
    }
}

/// What a proxy exports.
pub fn page(proxy: &Proxy) -> String {
    let mut client = Client::connect(proxy.admin.unwrap_or(proxy.address));
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    text(&client.send(request).answer().body)
}

/// The metrics of a page, by name.
pub fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            help.clone_into(&mut families.entry(name.to_owned()).or_default().help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
        } else {
            let (name, labels) = series(line);
            let name = base(name, |name| families.contains_key(name)).to_owned();
            families
                .get_mut(&name)
                .expect("announced")
                .series
                .push(labels);
        }
    }
    families
}

/// The name of the metric that a series belongs to.
pub fn base(name: &str, is_known: impl Fn(&str) -> bool) -> &str {
    let parts = ["_bucket", "_sum", "_count"];
    let stripped = parts.iter().find_map(|part| name.strip_suffix(part));
    stripped.filter(|name| is_known(name)).unwrap_or(name)
}

fn series(line: &str) -> (&str, BTreeMap<String, String>) {
    let (series, _value) = line.rsplit_once(' ').unwrap();
    let Some((name, labels)) = series.split_once('{') else {
        return (series, BTreeMap::new());
    };
    let labels = labels.strip_suffix('}').unwrap();
    let pairs = labels.strip_suffix('"').unwrap_or(labels).split("\",");
    let pair = |pair: &str| {
        let (name, value) = pair.split_once("=\"").expect("a label and its value");
        (name.to_owned(), value.to_owned())
    };
    (name, pairs.map(pair).collect())
}
