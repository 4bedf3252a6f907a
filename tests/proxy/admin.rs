//! What the operator sees.

use longhaul::config::Config;

use crate::support::{Client, Proxy, Tap, plain};

fn get(client: &mut Client, path: &str, headers: &str) -> crate::support::Answer {
    client
        .send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"))
        .answer()
}

#[test]
fn health_and_metrics_are_answered_here_and_not_forwarded() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    assert!(
        get(&mut client, "/healthz", "")
            .body
            .starts_with(b"{\"status\":\"alive\"")
    );
    assert_eq!(
        get(&mut client, "/readyz", "").body,
        b"{\"status\":\"ready\"}"
    );
    let metrics = get(&mut client, "/metrics", "");
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    assert!(tap.saw_nothing());
    assert_eq!(get(&mut client, "/v1/models", "").body, b"upstream");
}

#[test]
fn metrics_can_be_moved_to_an_address_of_their_own() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    let admin = proxy.admin.unwrap();
    assert_eq!(
        get(&mut Client::connect(admin), "/metrics", "").status(),
        200
    );
    assert_eq!(
        get(&mut Client::connect(admin), "/v1/models", "").status(),
        404
    );
    assert_eq!(get(&mut proxy.client(), "/metrics", "").body, b"upstream");
    assert_eq!(get(&mut proxy.client(), "/readyz", "").status(), 200);
}

#[test]
fn requests_are_counted_by_route_and_status() {
    let tap = Tap::start(|_| plain(b"{}"));
    let proxy = Proxy::before(&tap.url());
    for path in [
        "/v1/messages?beta=true",
        "/v1/messages/count_tokens",
        "/v1/files",
        "/v1/messages",
    ] {
        proxy.client().post(path, "", b"{}").answer();
    }
    let count = |route| {
        proxy.metric(&format!(
            "longhaul_requests_total{{route=\"{route}\",status=\"200\"}}"
        ))
    };
    assert_eq!(count("messages"), Some(2.0));
    assert_eq!(count("count_tokens"), Some(1.0));
    assert_eq!(count("other"), Some(1.0));
    assert_eq!(
        proxy.metric("longhaul_request_overhead_seconds_count"),
        Some(4.0)
    );
    assert_eq!(
        proxy.metric("longhaul_upstream_seconds_count{phase=\"first_byte\"}"),
        Some(4.0)
    );
    assert_eq!(
        proxy.metric("longhaul_upstream_seconds_count{phase=\"total\"}"),
        Some(4.0)
    );
    assert_eq!(proxy.metric("longhaul_requests_in_flight"), Some(0.0));
}

#[test]
fn an_address_in_use_is_a_clear_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config {
        listen: taken.local_addr().unwrap().to_string().parse().unwrap(),
        ..Config::default()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let surroundings = longhaul::app::Surroundings {
        admin_token: None,
        proxies: hyper_util::client::proxy::matcher::Matcher::builder().build(),
    };
    let started = runtime.block_on(longhaul::app::App::start(&config, surroundings));
    let message = started.err().unwrap().to_string();
    assert!(message.contains("cannot listen on 127.0.0.1:"), "{message}");
}
