//! Ways to the database: encrypted, and through a pooler that gives each
//! transaction another session.

use super::stories::lands_anywhere;
use super::wait;
use crate::cluster::{Cluster, Pooler, number, raw};
use crate::support::secure::Authority;
use longhaul::store::postgres;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_database_is_spoken_to_in_private_and_only_if_it_proves_who_it_is() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = (authority.file("cert.pem"), authority.file("key.pem"));
    let Some(cluster) = Cluster::encrypted(&certificate, &key) else {
        return;
    };
    let database = wait(cluster.database());
    let name = database.rsplit('/').next().unwrap();
    let url = |mode: &str, authority: &Authority| {
        let root = authority.trusted();
        let port = cluster.port();
        format!("postgres://tests@127.0.0.1:{port}/{name}?sslmode={mode}&sslrootcert={root}")
    };
    let open = |url: String| wait(postgres::open(&url, 4, PATIENCE));
    // What does not prove itself is an error at the start, and so is a server
    // that wants privacy and a client that does not.
    for url in [url("verify-full", &stranger), url("verify-ca", &stranger)] {
        let opened = open(url);
        assert!(opened.is_err(), "{:?}", opened.map(|opened| opened.reports));
    }
    let Err(refused) = open(url("disable", &authority)) else {
        panic!("it speaks in the open");
    };
    assert!(refused.to_string().contains("encryption"), "{refused}");
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
        WHERE ssl AND application_name = 'longhaul'";
    for mode in ["require", "verify-ca", "verify-full"] {
        let store = open(url(mode, &authority)).unwrap().store;
        let sessions = wait(async {
            let sessions = number(&mut raw(&database).await, encrypted).await;
            store.close().await.unwrap();
            sessions
        });
        assert_eq!(sessions, 1, "{mode}");
    }
    let folder = tempfile::tempdir().unwrap();
    let url = url("verify-full", &authority);
    lands_anywhere(&folder, &format!("store.url = {url:?}\n"));
}

#[test]
fn replicas_share_a_database_through_a_pooler() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let database = wait(cluster.database());
    let Some(pooler) = Pooler::before(cluster) else {
        return;
    };
    let name = database.rsplit('/').next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    lands_anywhere(&folder, &format!("store.url = {:?}\n", pooler.url(name)));
}
