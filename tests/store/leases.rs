//! Work that only one should do.

use std::time::Duration;

use longhaul::store::{Holder, Store};

use crate::over_every_store;
use crate::support::{at, in_database, in_files, sound};

const LONG: Duration = Duration::from_mins(5);

over_every_store! {
    a_lease_is_one_holder_s_until_it_is_given_back
    a_lease_expires_by_itself_unless_it_is_extended
    it_can_be_seen_whether_somebody_has_a_lease
    of_a_hundred_who_want_a_lease_one_gets_it
}

async fn a_lease_is_one_holder_s_until_it_is_given_back(store: &dyn Store) {
    let [one, other] = [(); 2].map(|()| Holder::random());
    let take = |name, holder| async move { store.lease(name, holder, LONG).await.unwrap() };
    assert!(take("a", one).await);
    assert!(take("a", one).await, "extended");
    assert!(!take("a", other).await);
    assert!(take("b\0'", other).await, "another lease");
    store.release("a", other).await.unwrap();
    assert!(!take("a", other).await, "it was not theirs to give back");
    store.release("a", one).await.unwrap();
    assert!(take("a", other).await);
    assert!(!take("a", one).await);
}

async fn a_lease_expires_by_itself_unless_it_is_extended(store: &dyn Store) {
    let [one, other] = [(); 2].map(|()| Holder::random());
    let short = Duration::from_millis(30);
    assert!(store.lease("a", one, short).await.unwrap());
    assert!(store.lease("b", one, short).await.unwrap());
    assert!(store.lease("b", one, LONG).await.unwrap());
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(store.lease("a", other, LONG).await.unwrap());
    assert!(!store.lease("a", one, LONG).await.unwrap());
    assert!(!store.lease("b", other, LONG).await.unwrap());
}

async fn it_can_be_seen_whether_somebody_has_a_lease(store: &dyn Store) {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let (some, none) = (names(&["a", "b\0'"]), names(&["c"]));
    assert!(!store.is_leased(&some).await.unwrap());
    let holder = Holder::random();
    store.lease("b\0'", holder, LONG).await.unwrap();
    assert!(store.is_leased(&some).await.unwrap());
    assert!(!store.is_leased(&none).await.unwrap());
    assert!(!store.is_leased(&[]).await.unwrap());
    store.release("b\0'", holder).await.unwrap();
    let short = Duration::from_millis(30);
    store.lease("a", holder, short).await.unwrap();
    tokio::time::sleep(short * 2).await;
    assert!(!store.is_leased(&some).await.unwrap(), "it has expired");
}

async fn of_a_hundred_who_want_a_lease_one_gets_it(store: &dyn Store) {
    one_gets_it(&[store]).await;
}

async fn one_gets_it(stores: &[&dyn Store]) {
    let mut taken = 0;
    let wanting = stores.iter().cycle().take(100);
    let wanting = wanting.map(|store| store.lease("a", Holder::random(), LONG));
    for answer in futures(wanting).await {
        taken += u32::from(answer.unwrap());
    }
    assert_eq!(taken, 1);
}

/// Waits for all of them at once.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(Box::pin).map(|future| (future, None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, answer) in &mut all {
            if answer.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *answer = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    all.into_iter().map(|(_, answer)| answer.unwrap()).collect()
}

#[tokio::test]
async fn stores_on_the_same_files_or_database_share_their_leases() {
    let home = in_files().await;
    let other = sound(home.folder.as_ref().unwrap().path()).await;
    one_gets_it(&[&*home.store, &*other]).await;
    if let Some((store, url)) = in_database().await {
        one_gets_it(&[&*store, &*at(&url).await]).await;
    }
}
