//! Connections: so many at once, each with a limit on how long its handshake, its heads and the
//! reading of its answers may take.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower_http::add_extension::AddExtension;

use crate::limits;
use crate::seat::{Seat, Seats};

/// Serves `router`, by TLS with what `tls` holds as each client comes if there is any, until `stop`
/// turns true, then lets the answers under way be given.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<watch::Receiver<TlsAcceptor>>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    let seats = Seats::default();
    let mut connections = JoinSet::new();
    loop {
        let stopping = stop.clone();
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let seat = seats.take();
        let router = AddExtension::new(router.clone(), Arc::clone(&seat));
        let tls = tls.as_ref().map(|it| it.borrow().clone());
        connections.spawn(async move {
            // An answer is one write; waiting for more to send with it helps nobody.
            let _ = stream.set_nodelay(true);
            let mut stream = Box::pin(TimeoutStream::new(stream));
            stream.as_mut().set_write_timeout_pinned(Some(limits::WRITE_WAIT_MAX));
            let served = async {
                match tls {
                    None => talk(stream, router, stopping).await,
                    Some(tls) => {
                        if let Some(stream) = shake(&tls, stream, stopping.clone()).await {
                            talk(stream, router, stopping).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = seat.must_leave() => {}
            }
            drop((seat, place));
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

/// A connection that ends once its client has not read for too long.
type Patient = Pin<Box<TimeoutStream<TcpStream>>>;

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // For want of file descriptors, most likely: some will be given back.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(limits::ACCEPT_RETRY).await;
            None
        }
    }
}

/// The handshake, if the client brings it to its end in time.
async fn shake(
    tls: &TlsAcceptor,
    stream: Patient,
    mut stop: watch::Receiver<bool>,
) -> Option<TlsStream<Patient>> {
    let shaken = tokio::time::timeout(limits::HEAD_WAIT_MAX, tls.accept(stream));
    tokio::select! {
        () = stopped(&mut stop) => None,
        shaken = shaken => match shaken {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => None,
        },
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: AddExtension<Router, Arc<Seat>>,
    mut stop: watch::Receiver<bool>,
) {
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
