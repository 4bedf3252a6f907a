//! The README's table, from a result that was written before.

use std::path::Path;

use serde_json::Value;

use crate::measure::readable;

/// The proxies, in the order of the columns.
const PROXIES: [&str; 5] = ["nginx", "relay", "off", "default", "passes"];

/// Prints it: time to the first byte at one connection and requests a second at
/// sixteen, as multiples of nginx's in the same run, and processor time at one.
pub fn print(file: &Path) {
    let text = std::fs::read_to_string(file).expect("no result yet: run the benchmark first");
    let all: Value = serde_json::from_str(&text).unwrap();
    let cases = all["cases"].as_array().unwrap();
    println!(
        "First byte at one connection, then requests a second at sixteen, as multiples of nginx's; CPU of the proxy for a request, in ms.\n"
    );
    println!(
        "| requests | nginx | relay | off | default | passes | CPU: nginx | relay | off | default | passes |"
    );
    println!("|{}", "---|".repeat(1 + 2 * PROXIES.len()));
    for case in cases.iter().filter(|case| case["connections"] == 1) {
        let same = |other: &&Value| {
            let shape = |case: &Value| (case["size"].clone(), case["growth"].clone());
            shape(other) == shape(case) && other["connections"] == 16
        };
        let sixteen = cases.iter().find(same);
        let mut cells = vec![requests(case)];
        for name in PROXIES {
            let one = find(case, name).map(|proxy| time(proxy, name));
            let many = sixteen.and_then(|case| find(case, name));
            let many = many.map(|proxy| rate(proxy, name));
            let both: Vec<String> = one.into_iter().chain(many).collect();
            cells.push(both.join(", "));
        }
        for name in PROXIES {
            let cpu = find(case, name).and_then(|proxy| proxy["cpu_ms"].as_f64());
            cells.push(cpu.map_or(String::new(), |cpu| format!("{cpu:.2}")));
        }
        println!("| {} |", cells.join(" | "));
    }
}

fn requests(case: &Value) -> String {
    let size = |name: &str| {
        let size = case[name].as_u64()?;
        usize::try_from(size).ok().map(readable)
    };
    let start = size("size").unwrap_or_default();
    match size("growth") {
        Some(growth) => format!("{start}, growing by {growth}"),
        None => format!("{start}, never seen"),
    }
}

/// A proxy by its name, or the first build of Longhaul by its setting.
fn find<'a>(case: &'a Value, name: &str) -> Option<&'a Value> {
    let mut proxies = case["proxies"].as_array()?.iter();
    proxies.find(|proxy| proxy["name"] == name || proxy["setting"] == name)
}

fn time(proxy: &Value, name: &str) -> String {
    let time = number(proxy, "/first_byte_ms/p50");
    let ratio = number(proxy, "/to_nginx/first_byte/median");
    match (name, ratio) {
        ("nginx", _) | (_, None) => format!("{:.2} ms", time.unwrap_or_default()),
        (_, Some(ratio)) => format!("{ratio:.2}"),
    }
}

fn rate(proxy: &Value, name: &str) -> String {
    let rate = number(proxy, "/requests_per_second");
    let ratio = number(proxy, "/to_nginx/rate/median");
    match (name, ratio) {
        ("nginx", _) | (_, None) => format!("{:.0}/s", rate.unwrap_or_default()),
        (_, Some(ratio)) => format!("{ratio:.2}"),
    }
}

fn number(proxy: &Value, pointer: &str) -> Option<f64> {
    proxy.pointer(pointer)?.as_f64()
}
