//! A proxy that dies at a chosen step of a pass.
//!
//! It is this test program itself, started again as a helper: a proxy on a real
//! store, which ends the whole process right before a write or right after it,
//! when it is durable and nobody has been told. To the files that is what a kill
//! is, only at a known place.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper_util::client::proxy::matcher::Matcher;
use longhaul::app::{App, Surroundings};
use longhaul::clock::Clock;
use longhaul::engine::ids::{BlobId, ChainHash, Hint, LineageId, OverlayId, Reference, SegmentId};
use longhaul::store::journal::{
    Archive, Branch, Entry, EntryRow, Extent, Forgotten, Journal, Kept, Listing, Match, Referred,
    Scope, Trace,
};
use longhaul::store::{
    Answer, Collected, Commit, Committed, Keep, MarkRow, Moment, Sessions, Store, sqlite,
};

use crate::support::Proxy;

const FOLDER: &str = "LONGHAUL_TEST_FOLDER";
const UPSTREAM: &str = "LONGHAUL_TEST_UPSTREAM";
const FILE: &str = "LONGHAUL_TEST_FILE";
const WRITE: &str = "LONGHAUL_TEST_WRITE";
const MOMENT: &str = "LONGHAUL_TEST_MOMENT";
const NUMBER: &str = "LONGHAUL_TEST_NUMBER";

/// When a proxy dies: at which of its writes, before it or after, and at the
/// how manieth of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    pub write: &'static str,
    pub moment: &'static str,
    pub number: usize,
}

/// A proxy in a process of its own, which is going to die.
pub struct Doomed {
    child: Child,
    pub address: SocketAddr,
}

impl Doomed {
    pub fn start(upstream: &str, file: &str, folder: &Path, death: Death) -> Self {
        let name = format!("{}::helper_that_dies_at_a_write", module_path!());
        let (_, name) = name.split_once("::").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(UPSTREAM, upstream)
            .env(FILE, file)
            .env(WRITE, death.write)
            .env(MOMENT, death.moment)
            .env(NUMBER, death.number.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, address) = line.split_once("listening on ")?;
            Some(address.parse().unwrap())
        });
        Self {
            address: address.unwrap(),
            child,
        }
    }

    /// Whether it has died by itself.
    pub fn is_dead(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by the tests that it dies for"]
fn helper_that_dies_at_a_write() {
    let said = |name: &str| std::env::var(name).unwrap();
    let folder = said(FOLDER);
    let config = Proxy::config(&said(UPSTREAM), &said(FILE), Path::new(&folder));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let opened = sqlite::open(&config.data_dir, config.store.timeout).await;
        let store = Dying {
            inner: opened.store,
            write: said(WRITE),
            after: said(MOMENT) == "after",
            left: AtomicUsize::new(said(NUMBER).parse().unwrap()),
        };
        let surroundings = Surroundings {
            admin_token: None,
            summarizer_key: None,
            proxies: Matcher::builder().build(),
            clock: Clock::default(),
        };
        let app = App::start_on(Arc::new(store), &config, surroundings);
        let app = app.await.unwrap();
        println!("\nlistening on {}", app.address());
        app.run(std::future::pending()).await;
    });
}

/// A store whose process dies at a write.
struct Dying {
    inner: Arc<dyn Store>,
    write: String,
    after: bool,
    left: AtomicUsize,
}

impl Dying {
    /// Does a write, and dies before it or after if it is the one.
    fn write<'a, T: Send + 'a>(&'a self, name: &str, work: Answer<'a, T>) -> Answer<'a, T> {
        let dies = name == self.write && self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        Box::pin(async move {
            if dies && !self.after {
                std::process::abort();
            }
            let done = work.await;
            if dies {
                std::process::abort();
            }
            done
        })
    }
}

impl Store for Dying {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.inner.marks(places)
    }
    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.inner.marks_by_view(hint, views)
    }
    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        self.inner.overlays_of(hint, limit)
    }
    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        self.inner.overlay(id)
    }
    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        self.write("commit", self.inner.commit(commit))
    }
    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        self.write("record", self.inner.record(marks))
    }
    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        self.inner.segments(ids)
    }
    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        self.write("segment", self.inner.put_segment(id, body, now))
    }
    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        self.inner.learned()
    }
    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        self.inner.learn(key, value)
    }
    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        self.inner.put_blobs(blobs, now)
    }
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        self.inner.blob(id)
    }
    fn journal(&self) -> &dyn Journal {
        self
    }
    fn sessions(&self) -> &dyn Sessions {
        self.inner.sessions()
    }
    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        self.inner.collect(keep)
    }
    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}

impl Journal for Dying {
    fn archive<'a>(
        &'a self,
        trace: &'a Trace,
        archive: &'a Archive,
        now: Moment,
    ) -> Answer<'a, LineageId> {
        let work = self.inner.journal().archive(trace, archive, now);
        self.write("archive", work)
    }
    fn append<'a>(
        &'a self,
        trace: &'a Trace,
        entries: &'a [Entry],
        now: Moment,
    ) -> Answer<'a, u64> {
        let work = self.inner.journal().append(trace, entries, now);
        self.write("append", work)
    }
    fn referred(&self, reference: Reference) -> Answer<'_, Vec<Referred>> {
        self.inner.journal().referred(reference)
    }
    fn alive(&self, session: LineageId) -> Answer<'_, Option<Branch>> {
        self.inner.journal().alive(session)
    }
    fn branch(&self, id: LineageId) -> Answer<'_, Option<Branch>> {
        self.inner.journal().branch(id)
    }
    fn children(&self, id: LineageId, behind: u32, limit: u32) -> Answer<'_, Vec<Branch>> {
        self.inner.journal().children(id, behind, limit)
    }
    fn branches(&self, before: Option<Moment>, limit: u32) -> Answer<'_, Vec<Branch>> {
        self.inner.journal().branches(before, limit)
    }
    fn matching<'a>(&'a self, scope: &'a Scope, terms: &'a [String]) -> Answer<'a, Vec<Match>> {
        self.inner.journal().matching(scope, terms)
    }
    fn entries<'a>(&'a self, numbers: &'a [i64]) -> Answer<'a, Vec<EntryRow>> {
        self.inner.journal().entries(numbers)
    }
    fn list<'a>(&'a self, scope: &'a Scope, listing: &'a Listing) -> Answer<'a, Vec<EntryRow>> {
        self.inner.journal().list(scope, listing)
    }
    fn kept<'a>(
        &'a self,
        scope: &'a Scope,
        messages: (u32, u32),
        as_of: Option<u32>,
    ) -> Answer<'a, Vec<Kept>> {
        self.inner.journal().kept(scope, messages, as_of)
    }
    fn forget(&self, id: LineageId) -> Answer<'_, Forgotten> {
        self.inner.journal().forget(id)
    }
    fn extent(&self) -> Answer<'_, Extent> {
        self.inner.journal().extent()
    }
}
