//! A proxy inside the test's own process, on a free port.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use hyper_util::client::proxy::matcher::Matcher;
use longhaul::app::{App, Quiet, Surroundings};
use longhaul::clock::Clock;
use longhaul::config::{Config, Flags, Sources, load};
use longhaul::store::Store;
use tokio::sync::oneshot;

use super::Client;

/// A running proxy; stops when dropped.
pub struct Proxy {
    pub address: SocketAddr,
    pub admin: Option<SocketAddr>,
    /// The path of the link that opens its page.
    pub page_link: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    quiet: Quiet,
    /// Where its files are.
    folder: Option<tempfile::TempDir>,
}

impl Proxy {
    /// In front of `upstream`, with the defaults.
    pub fn before(upstream: &str) -> Self {
        Self::with(upstream, "")
    }

    /// In front of `upstream`, with this configuration file.
    pub fn with(upstream: &str, file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Self::keeping(upstream, file, folder.path());
        proxy.folder = Some(folder);
        proxy
    }

    /// The same, with its files in a folder that outlives it.
    pub fn keeping(upstream: &str, file: &str, folder: &Path) -> Self {
        Self::keeping_time(upstream, file, folder, Clock::default())
    }

    /// The same, by a clock that a test can move.
    pub fn keeping_time(upstream: &str, file: &str, folder: &Path, clock: Clock) -> Self {
        Self::start(Self::config(upstream, file, folder), clock)
    }

    /// The configuration of one in front of `upstream`, with its files there.
    pub fn config(upstream: &str, file: &str, folder: &Path) -> Config {
        let path = folder.join("longhaul.toml");
        std::fs::write(&path, file).unwrap();
        let mut environment = vec![("HOME".to_owned(), folder.display().to_string())];
        if !file.contains("store.timeout") {
            // However busy the machine is, a story is told to its end.
            environment.push(("LONGHAUL_STORE__TIMEOUT".to_owned(), "20s".to_owned()));
        }
        if !file.contains("[summarizer]") {
            // No model is asked but by the stories that are about that.
            environment.push(("LONGHAUL_SUMMARIZER__MODE".to_owned(), "off".to_owned()));
        }
        if !["clear_at", "aim", "keep_tokens"]
            .iter()
            .any(|key| file.contains(key))
        {
            // A story is short: its passes are made at a size that it can reach.
            // What decides by default is told by those that set an aim.
            for (key, value) in [("CLEAR_AT", "0.6"), ("SUMMARIZE_AT", "0.7")] {
                environment.push((format!("LONGHAUL_POLICY__{key}"), value.to_owned()));
            }
        }
        let sources = Sources {
            file: Some(path),
            environment,
            flags: Flags {
                listen: Some("127.0.0.1:0".into()),
                upstream: Some(upstream.to_owned()),
                ..Flags::default()
            },
        };
        load(&sources)
            .unwrap_or_else(|problems| panic!("{problems}"))
            .config
    }

    /// In front of `upstream`, on a store of the test's own and with this admin
    /// token.
    pub fn on(store: Arc<dyn Store>, upstream: &str, file: &str, token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Self::config(upstream, file, folder.path());
        let mut proxy = Self::start_with(config, Clock::default(), Some(store), token);
        proxy.folder = Some(folder);
        proxy
    }

    /// In front of `upstream`, on a store of the test's own, by a clock that a
    /// test can move.
    pub fn on_time(
        store: Arc<dyn Store>,
        upstream: &str,
        file: &str,
        folder: &Path,
        clock: Clock,
    ) -> Self {
        let config = Self::config(upstream, file, folder);
        Self::start_with(config, clock, Some(store), None)
    }

    fn start(config: Config, clock: Clock) -> Self {
        Self::start_with(config, clock, None, None)
    }

    fn start_with(
        mut config: Config,
        clock: Clock,
        store: Option<Arc<dyn Store>>,
        token: Option<&str>,
    ) -> Self {
        let token = token.map(str::to_owned);
        config.workers.get_or_insert(1);
        let named = config.summarizer.api_key_env.is_some();
        let (stop, stopped) = oneshot::channel();
        let (started, address) = channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let proxies = Matcher::builder().build();
                let surroundings = Surroundings {
                    admin_token: token,
                    summarizer_key: named.then(|| "of-the-operator".to_owned()),
                    proxies,
                    clock,
                };
                let app = match store {
                    None => App::start(&config, surroundings).await,
                    Some(store) => App::start_on(store, &config, surroundings).await,
                };
                let app = app.unwrap();
                let quiet = app.quiet();
                let link = app.page_link().to_owned();
                let places = (app.address(), app.admin_address(), link);
                started.send((places, quiet)).unwrap();
                let stop = async { drop(stopped.await) };
                app.run(stop).await;
            });
        });
        let ((address, admin, page_link), quiet) = address.recv().unwrap();
        Self {
            address,
            admin,
            page_link,
            stop: Some(stop),
            thread: Some(thread),
            quiet,
            folder: None,
        }
    }

    /// A new connection to it.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Tells it to stop, without waiting.
    pub fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has stopped.
    pub fn join(&mut self) {
        self.tell_to_stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Waits until it has nothing to do.
    pub fn settle(&self) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(self.quiet.wait());
    }

    /// A metric's value, by the beginning of its line.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let answer = Client::connect(self.admin.unwrap_or(self.address))
            .send("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .answer();
        let text = String::from_utf8(answer.body).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series))?;
        line.trim().parse().ok()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Not waited for: a test that failed may have left a stream open.
        self.tell_to_stop();
    }
}
