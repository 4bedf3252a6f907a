//! Somebody on this machine who looks at pages and follows every link.

use std::collections::BTreeSet;

use crate::support::{Answer, Client, Proxy, text};

pub struct Visitor<'a> {
    proxy: &'a Proxy,
}

impl<'a> Visitor<'a> {
    pub fn of(proxy: &'a Proxy) -> Self {
        Self { proxy }
    }

    /// An answer, whatever it is.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        Client::connect(self.proxy.address).send(request).answer()
    }

    /// A page that must be there.
    pub fn open(&self, path: &str) -> String {
        let answer = self.ask("GET", path, "host: localhost\r\n", "");
        let page = text(&answer.body);
        assert_eq!(answer.status(), 200, "{path}: {page}");
        assert_guarded(&answer, path);
        page
    }

    /// Presses the button of a form.
    pub fn press(&self, path: &str, body: &str) -> Answer {
        let headers = "host: localhost\r\norigin: http://localhost\r\n\
                       content-type: application/x-www-form-urlencoded\r\n";
        self.ask("POST", path, headers, body)
    }

    /// Every page that can be reached from the front, with what it says.
    pub fn everything(&self) -> Vec<(String, String)> {
        let mut waiting = vec!["/longhaul/".to_owned()];
        let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
        let mut pages = Vec::new();
        while let Some(path) = waiting.pop() {
            let page = self.open(&path);
            for link in links(&page) {
                if seen.insert(link.clone()) {
                    waiting.push(link);
                }
            }
            pages.push((path, page));
        }
        pages
    }
}

/// The pages that a page leads to.
pub fn links(page: &str) -> Vec<String> {
    let hrefs = page.split("href=\"").skip(1);
    let hrefs = hrefs.filter_map(|rest| rest.split('"').next());
    let pages = hrefs.filter_map(|href| href.split('#').next());
    let own = pages.filter(|href| href.starts_with("/longhaul/") && !href.contains("/page."));
    own.map(|href| href.replace("&amp;", "&")).collect()
}

/// What goes with every answer.
pub fn assert_guarded(answer: &Answer, path: &str) {
    let policy = answer.header("content-security-policy").expect(path);
    for part in [
        "default-src 'none'",
        "script-src 'self';",
        "style-src 'self';",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{path}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{path}: {policy}");
    for (name, expected) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(expected), "{path}: {name}");
    }
}
