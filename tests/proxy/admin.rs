//! What the operator sees.

use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use longhaul::config::Config;

use crate::support::{Client, Proxy, Step, Tap, eventually, plain, text};
use crate::views::wishes::order;

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
        b"{\"status\":\"ready\",\"store\":\"ready\"}"
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

/// Whoever asks there means this process, and may have sent its token along.
#[test]
fn whatever_is_asked_for_under_our_own_names_is_never_forwarded() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let here = Proxy::before(&tap.url());
    let moved = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    let strange = [
        "/longhaul/sessions/",
        "/longhaul/nothing/here",
        "/longhaul//",
        "//longhaul/sessions",
        "/Longhaul/sessions",
        "/longhaul%2fsessions",
        "/longhaul%252fsessions",
        "/%6conghaul/sessions",
        "/v1/../longhaul/sessions",
        "/longhaul;x/sessions",
        "/mcp/",
        "//mcp",
        "/MCP",
        "/metrics/",
        "/Metrics",
        "/metrics%2f",
    ];
    let ours = [
        "/longhaul",
        "/longhaul/",
        "/metrics",
        "/mcp",
        "/longhaul/enter",
    ];
    for (proxy, paths) in [(&here, &strange[..]), (&moved, &strange), (&moved, &ours)] {
        for path in paths {
            for method in ["GET", "POST", "DELETE"] {
                let request = format!(
                    "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret\r\n\
                     content-length: 12\r\n\r\ntoken=secret"
                );
                let answer = proxy.client().send(request).answer();
                assert_eq!(answer.status(), 404, "{method} {path}");
            }
        }
    }
    assert!(tap.saw_nothing());
    // What only looks a little like one of ours is upstream's.
    for path in ["/mcp-registry/v0/servers", "/v1/mcp", "/metricsx"] {
        assert_eq!(get(&mut here.client(), path, "").body, b"upstream");
    }
}

#[test]
fn metrics_that_are_not_open_need_the_token_on_this_machine_too() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let store = || std::sync::Arc::new(longhaul::store::Memory::new());
    let closed = "admin.metrics_open = false";
    let status = |proxy: &Proxy, headers: &str| {
        let answer = get(&mut proxy.client(), "/metrics", headers);
        answer.status()
    };
    let guarded = Proxy::on(store(), &tap.url(), closed, Some("secret"));
    assert_eq!(status(&guarded, ""), 401);
    assert_eq!(status(&guarded, "authorization: Bearer secre\r\n"), 401);
    assert_eq!(status(&guarded, "authorization: Bearer secret\r\n"), 200);
    let open = Proxy::on(store(), &tap.url(), "", Some("secret"));
    assert_eq!(status(&open, ""), 200);
    let unguarded = Proxy::on(store(), &tap.url(), closed, None);
    assert_eq!(status(&unguarded, ""), 200);
}

/// Wrong tokens, wherever they are sent: the more, the longer the next one takes.
/// Whoever sends the right one is slowed down with them but gets in.
#[test]
fn wrong_tokens_are_counted_and_slowed_down_more_and_more() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let store = std::sync::Arc::new(longhaul::store::Memory::new());
    let proxy = Proxy::on(store, &tap.url(), "", Some("secret"));
    let local = "host: localhost\r\n";
    let send = |method: &str, path: &str, headers: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{local}{headers}content-length: {length}\r\n\r\n{body}"
        );
        proxy.client().send(request).answer().status()
    };
    let form = "origin: http://localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let begun = std::time::Instant::now();
    for guess in 0..2 {
        let bearer = format!("authorization: Bearer secret{guess}\r\n");
        assert_eq!(send("GET", "/longhaul/sessions", &bearer, ""), 401);
        assert_eq!(send("POST", "/mcp", &bearer, "{}"), 401);
        assert_eq!(send("GET", "/longhaul/", &bearer, ""), 401);
        let token = format!("token=secret{guess}");
        assert_eq!(send("POST", "/longhaul/enter", form, &token), 401);
    }
    // The fourth to the eighth waited 0.1, 0.2, 0.4, 0.8 and 1.6 s.
    assert!(begun.elapsed() >= Duration::from_millis(3_100));
    let refused = |reason: &str| {
        proxy.metric(&format!(
            "longhaul_admin_refused_total{{reason=\"{reason}\"}}"
        ))
    };
    assert_eq!(refused("wrong_token"), Some(8.0));
    assert_eq!(send("GET", "/longhaul/sessions", "", ""), 401);
    assert_eq!(refused("no_token"), Some(1.0));
    let begun = std::time::Instant::now();
    let right = "authorization: Bearer secret\r\n";
    assert_eq!(send("GET", "/longhaul/sessions", right, ""), 200);
    assert!(
        begun.elapsed() >= Duration::from_millis(3_200),
        "an answer tells at once"
    );
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
    assert_eq!(get(&mut proxy.client(), "/metrics", "").status(), 404);
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
fn a_request_whose_client_left_before_the_answer_is_counted_once() {
    let (closed, noticed) = channel();
    let tap = Tap::start(move |_| vec![Step::UntilClosed(closed.clone())]);
    let proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}");
    tap.seen();
    drop(client);
    noticed.recv_timeout(Duration::from_secs(10)).unwrap();
    let counts = || -> Vec<String> {
        let page = text(&get(&mut proxy.client(), "/metrics", "").body);
        let of_messages = "longhaul_requests_total{route=\"messages\"";
        let counts = page.lines().filter(|line| line.starts_with(of_messages));
        counts.map(str::to_owned).collect()
    };
    eventually("not counted", || !counts().is_empty());
    let counts = counts();
    assert!(counts.len() == 1 && counts[0].ends_with(" 1"), "{counts:?}");
}

#[test]
fn a_full_house_still_answers_health_on_its_own_address() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(
        &tap.url(),
        "[admin]\nlisten = \"127.0.0.1:0\"\n[limits]\nconnections = 4",
    );
    let _held: Vec<_> = (0..6)
        .map(|_| TcpStream::connect(proxy.address).unwrap())
        .collect();
    eventually("the house does not fill", || {
        proxy.metric("longhaul_client_connections") >= Some(4.0)
    });
    for round in 0..3 {
        let mut client = Client::connect(proxy.admin.unwrap());
        let answer = get(&mut client, "/healthz", "connection: close\r\n");
        assert_eq!(answer.status(), 200, "round {round}");
    }
}

#[test]
fn one_place_is_enough_for_one_connection_beside_an_admin_listener() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::with(
        &tap.url(),
        "admin.listen = \"127.0.0.1:0\"\nlimits.connections = 1",
    );
    assert_eq!(get(&mut proxy.client(), "/v1/x", "").status(), 200);
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
        summarizer_key: None,
        proxies: hyper_util::client::proxy::matcher::Matcher::builder().build(),
        clock: longhaul::clock::Clock::default(),
    };
    let started = runtime.block_on(longhaul::app::App::start(&config, surroundings));
    let message = started.err().unwrap().to_string();
    assert!(message.contains("cannot listen on 127.0.0.1:"), "{message}");
}

/// A page in a browser on this machine is on this machine too.
#[test]
fn orders_are_not_taken_from_pages_of_others() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::before(&tap.url());
    let port = proxy.address.port();
    let rows = [
        (format!("host: 127.0.0.1:{port}\r\n"), 404),
        (
            format!("host: localhost:{port}\r\norigin: http://localhost:{port}\r\n"),
            404,
        ),
        (
            format!("host: localhost:{port}\r\norigin: http://localhost:1\r\n"),
            403,
        ),
        (
            format!("host: localhost:{port}\r\norigin: https://evil.example\r\n"),
            403,
        ),
        (format!("host: localhost:{port}\r\norigin: null\r\n"), 403),
        ("host: evil.example\r\n".to_owned(), 403),
        (
            "host: evil.example\r\norigin: http://evil.example\r\n".to_owned(),
            403,
        ),
    ];
    for (headers, status) in rows {
        let answer = order(&proxy, "x", &headers, "");
        assert_eq!(answer.status(), status, "{headers}");
        assert!(answer.body.starts_with(b"{"), "{headers}");
    }
    assert!(tap.saw_nothing());
    let refused = proxy.metric("longhaul_requests_total{route=\"admin\",status=\"403\"}");
    assert_eq!(refused, Some(5.0));
}

#[test]
fn an_order_that_makes_no_sense_is_told_why() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::before(&tap.url());
    let long = format!("{{\"instructions\":\"{}\"}}", "x".repeat(16_385));
    let longer = "x".repeat(200_000);
    for (body, why) in [
        ("[]", "JSON object"),
        ("{\"instructions\": 7}", "must be a string"),
        ("{\"instruction\": \"x\"}", "not known"),
        (&long, "at most 16384"),
        (&longer, "length limit"),
    ] {
        let answer = order(&proxy, "x", "host: localhost\r\n", body);
        assert_eq!(answer.status(), 400, "{why}");
        let said = text(&answer.body);
        assert!(said.contains(why), "{said}");
    }
    let path = "/longhaul/sessions/x/compact";
    assert_eq!(get(&mut proxy.client(), path, "").status(), 405);
}

#[test]
fn orders_move_with_the_admin_listener() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    assert_eq!(order(&proxy, "x", "host: localhost\r\n", "").status(), 404);
    assert!(tap.saw_nothing());
    let path = "/longhaul/sessions/x/compact";
    let answer = proxy.client().post(path, "", b"").answer();
    assert_eq!(answer.status(), 404);
    assert!(tap.saw_nothing());
}
