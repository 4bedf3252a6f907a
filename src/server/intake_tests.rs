//! Bodies that come whole, in pieces, too long, too slowly, or all at once.

use prometheus::IntGauge;

use super::super::room::gauge_bytes;
use super::*;

fn limits() -> Limits {
    Limits {
        body_bytes: 1000,
        body_idle: Duration::from_millis(20),
        buffer_wait: Duration::from_millis(20),
    }
}

fn room(bytes: u64) -> Room {
    Room::new(bytes, IntGauge::new("held", "held").unwrap())
}

#[tokio::test]
async fn room_is_held_until_the_last_reference_is_dropped() {
    let room = room(ROOM_UNIT as u64);
    let body = receive(Body::from("abc"), &limits(), &room).await.unwrap();
    assert_eq!(body, "abc");
    assert_eq!(room.held(), gauge_bytes(1));
    let second = receive(Body::from("abc"), &limits(), &room).await;
    assert!(matches!(second, Err(Failure::NoRoom(_))));
    let slice = body.slice(1..);
    drop(body);
    assert!(receive(Body::from("abc"), &limits(), &room).await.is_err());
    drop(slice);
    assert!(receive(Body::from("abc"), &limits(), &room).await.is_ok());
    assert_eq!(room.held(), 0);
}

#[tokio::test]
async fn a_promise_costs_no_room_until_it_is_kept_and_an_impossible_one_is_refused() {
    let room = room(1 << 20);
    let limits = Limits {
        body_bytes: u64::MAX,
        ..limits()
    };
    let outcome = receive(Body::new(Silent(64 << 20)), &limits, &room).await;
    assert!(matches!(outcome, Err(Failure::BodyStalled(_, 0))));
    let outcome = receive(Body::new(Silent(1 << 60)), &limits, &room).await;
    assert!(matches!(outcome, Err(Failure::NoRoom(_))));
    assert_eq!(room.held(), 0);
}

/// Guards against bodies that each have some of the room and none enough.
#[tokio::test]
async fn bodies_that_do_not_all_fit_come_one_after_another() {
    let room = room(1 << 20);
    let limits = Limits {
        body_bytes: 1 << 20,
        buffer_wait: Duration::from_secs(20),
        body_idle: Duration::from_secs(20),
    };
    let one = || async {
        let pieces = Body::new(Declared(vec![100_000; 9], false));
        receive(pieces, &limits, &room).await.map(|body| body.len())
    };
    let all = tokio::join!(one(), one(), one(), one());
    for length in [all.0, all.1, all.2, all.3] {
        assert_eq!(length.unwrap(), 900_000);
    }
}

fn patient() -> Limits {
    Limits {
        body_bytes: 8 << 20,
        buffer_wait: Duration::from_mins(1),
        body_idle: Duration::from_mins(1),
    }
}

/// Runs all of them on one thread, each as far as it gets.
async fn together<T: Send + 'static>(
    count: usize,
    one: impl Fn() -> Pin<Box<dyn Future<Output = T> + Send>>,
) -> Vec<T> {
    let all: Vec<_> = (0..count).map(|_| tokio::spawn(one())).collect();
    let mut done = Vec::new();
    for one in all {
        done.push(one.await.unwrap());
    }
    done
}

fn gzipped(length: usize) -> Vec<u8> {
    use std::io::Write;
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Packs well, but not so well that one step of unfolding sees all of it.
    for line in 0..length / 100 {
        write!(writer, "{line:<100}").unwrap();
    }
    writer.finish().unwrap()
}

/// Each of them held a part of the room while it waited for more.
#[tokio::test]
async fn compressed_bodies_that_do_not_all_fit_come_one_after_another() {
    const LENGTH: usize = 3_000_000;
    let room = room(8 << 20);
    let packed = Bytes::from(gzipped(LENGTH));
    let all = together(12, || {
        let (room, packed) = (room.clone(), packed.clone());
        Box::pin(async move {
            let coding = Some(Coding::Gzip);
            let taken = receive_readable(packed.into(), coding, &patient(), &room).await;
            taken.map(|(_, readable)| readable.map(|readable| readable.len()))
        })
    });
    for length in all.await {
        assert_eq!(length.unwrap(), Some(LENGTH));
    }
    assert_eq!(room.held(), 0);
}

#[tokio::test]
async fn bodies_of_unknown_length_that_do_not_all_fit_come_one_after_another() {
    let room = room(16 << 20);
    let all = together(20, || {
        let room = room.clone();
        Box::pin(async move {
            let body = Body::new(Undeclared(Declared(vec![500_000; 10], false)));
            let body = receive(body, &patient(), &room).await;
            body.map(|body| body.len())
        })
    });
    for length in all.await {
        assert_eq!(length.unwrap(), 5_000_000);
    }
    assert_eq!(room.held(), 0);
}

/// What a decoder needs counts too, before it is there.
#[tokio::test]
async fn unfolding_waits_for_the_memory_it_takes() {
    use std::io::Write;
    let mut packed = Vec::new();
    brotli::CompressorWriter::new(&mut packed, 4096, 5, 24)
        .write_all(&vec![b' '; 4 << 20])
        .unwrap();
    assert!(packed.len() < 100);
    let room = room(30 << 20);
    let mut other = room.share(Duration::ZERO);
    other.cover(12 << 20).await.unwrap();
    let limits = Limits {
        buffer_wait: Duration::from_millis(20),
        ..patient()
    };
    let coding = Some(Coding::Brotli);
    let one = || receive_readable(packed.clone().into(), coding, &limits, &room);
    assert!(matches!(one().await, Err(Failure::NoRoom(_))));
    drop(other);
    let (body, readable) = one().await.unwrap();
    assert_eq!(readable.map(|readable| readable.len()), Some(4 << 20));
    drop(body);
    assert_eq!(room.held(), 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_declared_or_not() {
    let room = room(1 << 20);
    let declared = Body::from(vec![0; 1001]);
    let streamed = Body::new(Pieces(vec![600, 600]));
    for body in [declared, streamed] {
        let outcome = receive(body, &limits(), &room).await;
        assert!(matches!(
            outcome,
            Err(Failure::BodyTooLarge { limit: 1000 })
        ));
    }
    assert_eq!(room.held(), 0);
}

#[tokio::test]
async fn a_body_that_falls_silent_is_given_up() {
    let room = room(1 << 20);
    let silent = Body::new(Silent(10));
    let outcome = receive(silent, &limits(), &room).await;
    assert!(matches!(outcome, Err(Failure::BodyStalled(_, 0))));
}

/// Promises a length and sends nothing.
struct Silent(u64);

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

/// Says how long it is, and comes piece by piece with others in between.
struct Declared(Vec<usize>, bool);

impl http_body::Body for Declared {
    type Data = Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.1 = !self.1;
        if self.1 {
            // The others go on first.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let size = self.0.pop();
        Poll::Ready(size.map(|size| Ok(Frame::data(vec![0; size].into()))))
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().sum::<usize>() as u64)
    }
}

/// Does not say how long it is.
struct Undeclared(Declared);

impl http_body::Body for Undeclared {
    type Data = Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }
}

struct Pieces(Vec<usize>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(
            self.0
                .pop()
                .map(|size| Ok(Frame::data(vec![0; size].into()))),
        )
    }
}
