//! Databases as operators have them: with few connections, narrow rights, other
//! settings, wrong clocks and clients that vanish; and what a question costs
//! there.

use std::sync::Arc;
use std::time::Duration;

use longhaul::store::{Commit, Committed, Keep, MarkRow, Moment, Store, StoreError, postgres};

use crate::cluster::{Cluster, Relay, execute, number, raw};
use crate::journal_support::{append, entry, search, trace, whole};
use crate::support::{
    EVERYTHING, PATIENCE, at, blob, body, chain as place, commit, in_database, lineage, mark,
    marks, overlay,
};

/// So that whoever finds where a conversation stands needs no second question to
/// know whether its session has gone on elsewhere.
#[tokio::test]
async fn the_farthest_of_the_marks_tells_how_far_its_session_has_come() {
    let Some((store, _)) = in_database().await else {
        return;
    };
    let at = |number, messages, seen_at| MarkRow {
        messages,
        seen_at: Moment(seen_at),
        ..mark(number)
    };
    let rows = [at(1, 1, 10), at(2, 3, 20), at(3, 7, 30), at(4, 5, 25)];
    store.record(&rows).await.unwrap();
    let mut found = store.find(&[1, 2].map(place)).await.unwrap();
    found.sort_by_key(|found| found.mark.messages);
    let newest: Vec<_> = found.iter().map(|found| found.newest).collect();
    assert_eq!(newest, [None, Some(7)]);
    let marks: Vec<_> = found.into_iter().map(|found| found.mark).collect();
    assert_eq!(marks, rows[..2]);
    assert_eq!(store.find(&[place(3)]).await.unwrap()[0].newest, Some(7));
}

/// Its host went down in the middle of a transaction, and the server has not
/// heard of it.
#[tokio::test]
async fn a_client_that_vanishes_holds_nobody_up_for_long() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let store = at(&url).await;
    store.commit(&commit(1, 1)).await.unwrap();
    let relay = Relay::before(cluster, "INSERT INTO longhaul.overlays");
    let vanishing = at(&relay.url(cluster, url.rsplit('/').next().unwrap())).await;
    let next = |number| Commit {
        parent: Some(overlay(1)),
        ..commit(1, number)
    };
    let (theirs, ours) = (next(2), next(3));
    tokio::spawn(async move { vanishing.commit(&theirs).await.map(|_| ()) });
    while !relay.has_lost_one() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.commit(&ours).await.unwrap(), Committed::Done);
}

/// The URL of a database as another role, which is made with these rights.
async fn as_role(url: &str, name: &str, rights: &str) -> String {
    let mut stranger = raw(url).await;
    execute(&mut stranger, &format!("CREATE ROLE {name} LOGIN {rights}")).await;
    let database = url.rsplit('/').next().unwrap();
    let sql = format!("GRANT CREATE ON DATABASE {database} TO {name}");
    execute(&mut stranger, &sql).await;
    url.replace("//tests@", &format!("//{name}@"))
}

#[tokio::test]
async fn a_limit_of_connections_below_the_pools_only_makes_others_wait() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let url = as_role(&url, "has_few", "CONNECTION LIMIT 2").await;
    let store = postgres::open(&url, 16, PATIENCE).await.unwrap().store;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        asking.spawn(async move { store.commit(&commit(number, number)).await.map(|_| ()) });
    }
    for done in asking.join_all().await {
        done.unwrap();
    }
    // With none at all it is away.
    let other = postgres::open(&url, 1, PATIENCE).await.unwrap().store;
    let away = other.marks(&[place(1)]).await.unwrap_err();
    assert!(matches!(away, StoreError::Away(_)), "{away}");
    assert_eq!(marks(&*store, &[1, 63]).await.len(), 2);
}

/// Once the way of all databases, and still that of some.
#[tokio::test]
async fn it_does_not_matter_what_a_database_takes_a_backslash_for() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let name = url.rsplit('/').next().unwrap();
    let mut stranger = raw(&url).await;
    let sql = format!("ALTER DATABASE {name} SET standard_conforming_strings = off");
    execute(&mut stranger, &sql).await;
    let store = at(&url).await;
    let made = commit(1, 1);
    store.commit(&made).await.unwrap();
    assert_eq!(marks(&*store, &[1]).await, [made.mark]);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), Some(body(1)));
    let here = trace(1, None, 2);
    append(&*store, &here, &[entry(1, "one \\ two")], 1).await;
    let found = search(&*store, &whole(lineage(1)), "two").await;
    assert_eq!(found.len(), 1);
}

/// As if the clock of this machine were forty days ahead of everybody else's.
#[tokio::test]
async fn a_replica_with_a_wrong_clock_removes_nothing_that_is_not_old() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let name = url.rsplit('/').next().unwrap();
    let mut stranger = raw(&url).await;
    for sql in [
        "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
         $$ SELECT pg_catalog.clock_timestamp() - interval '40 days' $$",
        &format!("ALTER DATABASE {name} SET search_path = public, pg_catalog"),
    ] {
        execute(&mut stranger, sql).await;
    }
    let day = 24 * 60 * 60 * 1_000;
    let here = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let here = i64::try_from(here.unwrap().as_millis()).unwrap();
    let there = here - 40 * day;
    let store = at(&url).await;
    let seen = |number, seen_at| MarkRow {
        seen_at: Moment(seen_at),
        ..mark(number)
    };
    let rows = [seen(1, there - day), seen(2, there - 31 * day)];
    store.record(&rows).await.unwrap();
    let keep = Keep {
        since: Moment(here - 30 * day),
        blobs_since: Moment(here - 30 * day),
        idle_since: Moment(here),
        state_bytes: u64::MAX,
        blob_bytes: u64::MAX,
    };
    assert_eq!(store.collect(keep).await.unwrap().marks, 1);
    assert_eq!(marks(&*store, &[1, 2]).await, rows[..1]);
}

#[tokio::test]
async fn a_role_that_may_not_write_is_told_which_right_is_missing() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let as_reader = as_role(&url, "may_read", "").await;
    at(&url).await.close().await.unwrap();
    let mut stranger = raw(&url).await;
    for (grant, missing) in [
        ("USAGE ON SCHEMA longhaul TO may_read", "permission denied"),
        (
            "SELECT ON longhaul.format TO may_read",
            "DELETE on longhaul.blobs",
        ),
        (
            "SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA longhaul TO may_read",
            "DELETE on",
        ),
    ] {
        execute(&mut stranger, &format!("GRANT {grant}")).await;
        let error = postgres::open(&as_reader, 4, PATIENCE).await.err();
        let said = error.unwrap().to_string();
        assert!(said.contains(missing), "{said}");
        // A line of the server's own source says nothing to anybody.
        assert!(!said.contains(" at line "), "{said}");
    }
    let all = "GRANT DELETE ON ALL TABLES IN SCHEMA longhaul TO may_read";
    execute(&mut stranger, all).await;
    let store = at(&as_reader).await;
    store.commit(&commit(1, 1)).await.unwrap();
    append(&*store, &trace(1, None, 2), &[entry(1, "word")], 1).await;
    let lone = [(blob(1), body(1))];
    store.put_blobs(&lone, Moment(1)).await.unwrap();
    store.collect(EVERYTHING).await.unwrap();
    // Nor is one that may not make the tables.
    let empty = cluster.database().await;
    let as_reader = empty.replace("//tests@", "//may_read@");
    let error = postgres::open(&as_reader, 4, PATIENCE).await.err();
    let said = error.unwrap().to_string();
    assert!(said.contains("CREATE on the database"), "{said}");
}

#[tokio::test]
async fn looking_makes_no_tables() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database().await;
    let error = postgres::look(&url, 4, PATIENCE).await.err().unwrap();
    assert!(
        error.to_string().contains("nothing of Longhaul's"),
        "{error}"
    );
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'longhaul'";
    assert_eq!(number(&mut raw(&url).await, schemas).await, 0);
    at(&url).await.commit(&commit(1, 1)).await.unwrap();
    let store = postgres::look(&url, 4, PATIENCE).await.unwrap().store;
    assert_eq!(marks(&*store, &[1]).await.len(), 1);
}

/// Whatever is written to branches, and however, by any version.
#[tokio::test]
async fn the_extent_is_that_of_all_branches_and_costs_no_look_at_them() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    let mut stranger = raw(&url).await;
    let grow = async |store: &dyn Store, from: u32| {
        for turn in from..from + 5 {
            let here = trace(1, (turn > 1).then_some(turn - 1), turn);
            append(store, &here, &[entry(turn, "word")], 1).await;
            let other = trace(u64::from(100 + turn), None, 2);
            append(store, &other, &[entry(1, "word")], 1).await;
        }
        let gone = lineage(u64::from(100 + from));
        store.journal().forget(gone).await.unwrap();
    };
    let mut is_right = async |store: &dyn Store| {
        let extent = store.journal().extent().await.unwrap();
        let mut counted = async |what: &str| {
            let sql = format!("SELECT ({what})::bigint FROM longhaul.branches");
            number(&mut stranger, &sql).await.unsigned_abs()
        };
        let blobs = "(SELECT coalesce(sum(size), 0) FROM longhaul.blobs)";
        let size = counted(&format!("coalesce(sum(size), 0) + {blobs}")).await;
        assert_eq!(extent.bytes, size);
        assert_eq!(extent.branches, counted("count(id)").await);
        assert_eq!(extent.entries, counted("coalesce(sum(entries), 0)").await);
    };
    grow(&*store, 1).await;
    is_right(&*store).await;
    store.collect(EVERYTHING).await.unwrap();
    is_right(&*store).await;
    // As an earlier format had it.
    store.close().await.unwrap();
    let older = "DROP INDEX longhaul.marks_by_hint; DROP TABLE longhaul.extents; \
        DROP FUNCTION longhaul.branches_came() CASCADE; \
        DROP FUNCTION longhaul.branches_changed() CASCADE; \
        DROP FUNCTION longhaul.branches_went() CASCADE; \
        DROP FUNCTION longhaul.mark_moved() CASCADE; \
        UPDATE longhaul.format SET version = 2";
    execute(&mut raw(&url).await, older).await;
    let store = at(&url).await;
    is_right(&*store).await;
    grow(&*store, 6).await;
    is_right(&*store).await;
}

/// How a question is answered, where it may choose.
async fn plan(url: &str, sql: &str) -> String {
    use sqlx::Row;
    let mut stranger = raw(url).await;
    let sql = format!("SET enable_seqscan = off; EXPLAIN {sql}");
    let statement = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
    let rows = statement.fetch_all(&mut stranger).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

#[tokio::test]
async fn the_overlays_of_a_session_are_found_by_an_index_of_their_own() {
    let Some((_store, url)) = in_database().await else {
        return;
    };
    let plan = plan(
        &url,
        "SELECT overlay FROM longhaul.marks WHERE hint = '' AND overlay IS NOT NULL \
         AND seen_at <= 1 ORDER BY seen_at DESC, overlay LIMIT 1",
    );
    let plan = plan.await;
    assert!(
        plan.contains("Index Only Scan using marks_by_hint"),
        "{plan}"
    );
    assert!(!plan.contains("Sort"), "{plan}");
}
