//! Several proxies in front of one API that share a store: any request may land
//! on any of them.

mod alone;
mod bound;
mod breakers;
mod fire;
mod latency;
mod provisional;
mod reach;
mod stories;
mod tenants;
mod wishes;

use crate::cluster::Cluster;
use crate::support::{Proxy, simulated::Simulated};

/// What replicas can share: the files of one machine, and a database where there
/// is a server.
fn shared() -> Vec<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = vec![(folder, String::new())];
    if let Some(cluster) = Cluster::shared() {
        let url = wait(cluster.database());
        let folder = tempfile::tempdir().unwrap();
        shared.push((folder, format!("store.url = {url:?}\n")));
    }
    shared
}

/// Waits for something that only a runtime can do.
pub fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

fn replicas(
    count: usize,
    upstream: &Simulated,
    folder: &tempfile::TempDir,
    file: &str,
) -> Vec<Proxy> {
    let url = upstream.sim.url();
    let replica = |_| Proxy::keeping(&url, file, folder.path());
    (0..count).map(replica).collect()
}
