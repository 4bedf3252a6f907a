//! A real Prometheus, with the configuration and the rules that ship, over a
//! session that is played while it looks; and its tool's opinion of the files.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use longhaul::sim::Options;
use serde_json::Value;

use super::played::{PAGE, SETTINGS, play};
use super::queries::panels;
use super::tools::{run, tool};
use crate::summaries::stage::Stage;
use crate::support::{Client, eventually, text};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docker/prometheus"))
}

/// A running Prometheus; ends when dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// One that scrapes this target every second.
    fn over(program: &Path, target: SocketAddr) -> Self {
        let own = tempfile::tempdir().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
        let config = read("prometheus.yml");
        let here = config
            .replace("longhaul:4180", &target.to_string())
            .replace("interval: 15s", "interval: 1s");
        assert_ne!(config, here);
        let write = |name: &str, text: &str| std::fs::write(own.path().join(name), text).unwrap();
        write("prometheus.yml", &here);
        write("rules.yml", &read("rules.yml"));
        // Free a moment ago; nobody else takes ports that were given out so late.
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let child = Command::new(program)
            .current_dir(own.path())
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            _folder: own,
        }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut client = Client::try_connect(self.address)?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = client.send(request).try_answer()?;
        serde_json::from_slice(&answer.body).ok()
    }

    /// The values that a query gives now.
    fn ask(&self, query: &str) -> Vec<f64> {
        let letter = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        let query: String = query.bytes().map(letter).collect();
        let Some(answer) = self.get(&format!("/api/v1/query?query={query}")) else {
            return Vec::new();
        };
        assert_eq!(answer["status"], "success", "{answer}");
        let result = answer["data"]["result"].as_array().unwrap();
        let values = result.iter().filter_map(|row| row["value"][1].as_str());
        let numbers = values.filter_map(|value| value.parse::<f64>().ok());
        numbers.filter(|number| number.is_finite()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What Grafana puts in place of its variables.
fn filled(query: &str) -> String {
    query
        .replace("$instance", ".*")
        .replace("$__rate_interval", "1m")
        .replace("$__range", "5m")
}

#[test]
fn no_panel_is_empty_after_a_session() {
    let Some(program) = tool("prometheus") else {
        return;
    };
    let mut stage = Stage::small(Options::default(), SETTINGS);
    let prometheus = Prometheus::over(&program, stage.proxy.address);
    // What is there before the session is what its counters rise from.
    eventually("nothing is scraped", || {
        prometheus.ask("longhaul_sessions_active") == [0.0]
    });
    play(&mut stage);
    let done = stage.metric("requests_total{route=\"messages\",status=\"200\"}");
    eventually("the end of the session is not scraped", || {
        let seen = "longhaul_requests_total{route=\"messages\",status=\"200\"}";
        prometheus.ask(seen) == [done] && !prometheus.ask(&format!("rate({seen}[1m])")).is_empty()
    });
    for (title, queries) in panels() {
        for query in queries {
            let query = filled(&query);
            eventually(&format!("{title} is empty: {query}"), || {
                !prometheus.ask(&query).is_empty()
            });
        }
    }
    // A few must tell what was played.
    let moved = [
        "Sessions",
        "Left out of prompts",
        "Read from the cache",
        "Breakers open",
        "Needs a look",
        "Context, before and after",
        "Compactions",
        "Summarizer",
        "Overhead",
    ];
    for (title, queries) in panels() {
        let first = prometheus.ask(&filled(&queries[0]));
        let positive = first.iter().any(|value| *value > 0.0);
        assert!(positive || !moved.contains(&title.as_str()), "{title}");
    }
    let rules = prometheus.get("/api/v1/rules").unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 9);
    for rule in rules {
        eventually("a rule is not evaluated", || {
            let rules = prometheus.get("/api/v1/rules").unwrap();
            let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
            let same = rules.iter().find(|other| other["name"] == rule["name"]);
            same.is_some_and(|rule| rule["health"] == "ok")
        });
    }
    // And one must ring.
    eventually("the truncation rings no bell", || {
        let firing = "ALERTS{alertname=\"LonghaulTruncating\",alertstate=\"firing\"}";
        !prometheus.ask(firing).is_empty()
    });
}

#[test]
fn promtool_finds_nothing_wrong_with_the_files() {
    let Some(promtool) = tool("promtool") else {
        return;
    };
    for arguments in [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "rules.yml"],
        ["test", "rules", "rules_test.yml"],
    ] {
        let mut command = Command::new(&promtool);
        let output = run(command.args(arguments).current_dir(folder()), "");
        assert!(
            output.status.success(),
            "{arguments:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let Some(promtool) = tool("promtool") else {
        return;
    };
    let mut command = Command::new(&promtool);
    let output = run(command.args(["check", "metrics"]), &PAGE);
    let said = text(&[output.stdout, output.stderr].concat());
    assert!(output.status.success() && said.is_empty(), "{said}");
}
