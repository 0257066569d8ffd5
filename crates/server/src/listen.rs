//! Connections: so many at once, each with a limit on how long its head may take.

use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::limits;

/// Serves `router` until `stop` turns true, then lets the answers under way be given.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let seats = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let stopping = stop.clone();
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = accept(&listener, &seats) => accepted,
        };
        let Some((stream, seat)) = accepted else { continue };
        let router = router.clone();
        connections.spawn(async move {
            talk(stream, router, stopping).await;
            drop(seat);
        });
        // Those that have ended are forgotten as others come.
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Comes back once everything is to end.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone will not say so any more, which is the end too.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn accept(
    listener: &TcpListener,
    seats: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let seat = Arc::clone(seats).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, seat)),
        Err(error) => {
            // For want of file descriptors, most likely: some will be given back.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(limits::ACCEPT_RETRY).await;
            None
        }
    }
}

async fn talk(stream: TcpStream, router: Router, mut stop: watch::Receiver<bool>) {
    // An answer is one write; waiting for more to send with it helps nobody.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_WAIT_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    // A client that goes in the middle is its own affair.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}
