//! How the hosts of a job reach each other: addresses, calls, and heartbeats.
//!
//! A host is lost when its *kernel* answers no more: TCP's keepalives are its heartbeats.  A
//! process that is stopped, or computes for an hour, is on a host that answers; whether it is lost
//! is decided by its siblings' progress, as on one host.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{setsockopt, sockopt};
use selvedge_stmr::greet::{Card, Greeting, SECRET_BYTES, Secret, Side};
use selvedge_stmr::limits::{
    ADDRESSES_MAX, CALL_MAX_MS, GREETING_MAX_MS, HEARTBEAT_EVERY_S, HEARTBEATS_MAX, REACH_MAX_MS,
};

const CALL_MAX: Duration = Duration::from_millis(CALL_MAX_MS);
const GREETING_MAX: Duration = Duration::from_millis(GREETING_MAX_MS);
const REACH_MAX: Duration = Duration::from_millis(REACH_MAX_MS);

/// Between two times that all addresses are tried.
const PAUSE: Duration = Duration::from_millis(100);

/// What this host is called.
pub(super) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The addresses of this host at which others may reach it, those of IPv6 first.
pub(super) fn addresses() -> Vec<IpAddr> {
    let mut found = Vec::new();
    for row in getifaddrs().into_iter().flatten() {
        let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        let Some(address) = row.address.filter(|_| row.flags.contains(wanted)) else { continue };
        let address = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(it), _) => IpAddr::V4(it.ip()),
            (None, Some(it)) => IpAddr::V6(it.ip()),
            (None, None) => continue,
        };
        if is_reached(address) && !found.contains(&address) {
            found.push(address);
        }
    }
    found.sort_by_key(IpAddr::is_ipv4);
    found.truncate(ADDRESSES_MAX);
    found
}

/// Whether another host could mean this one by it.
fn is_reached(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => !it.is_loopback() && !it.is_link_local() && !it.is_unspecified(),
        // One that is valid on one link is none without the name of that.
        IpAddr::V6(it) => !it.is_loopback() && !it.is_unicast_link_local() && !it.is_unspecified(),
    }
}

/// A port of the system's choice at all addresses, of both kinds where there are both.
pub(super) fn listen() -> io::Result<TcpListener> {
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0));
    both.or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

/// As text, for an environment.
pub(super) fn to_text(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" ")
}

/// Bytes that nobody can foresee.
pub(super) fn draw<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Lets small words go at once, and asks for heartbeats: of a link on which nothing is under way
/// the kernel says within [`selvedge_stmr::limits::SILENCE_MAX_MS`] that its other host is gone.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let every = HEARTBEAT_EVERY_S;
    stream.set_nodelay(true)?;
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &every)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &every)?;
    setsockopt(stream, sockopt::TcpKeepCount, &HEARTBEATS_MAX)?;
    Ok(())
}

/// Finds out who is at the other end, and proves who is at this one.
pub(super) fn greet(
    mut stream: &TcpStream,
    side: Side,
    secret: Secret,
    own: Card,
) -> io::Result<Card> {
    let mut greeting = Greeting::new(side, secret, own, draw::<SECRET_BYTES>()?);
    let until = Instant::now() + GREETING_MAX;
    stream.set_write_timeout(Some(GREETING_MAX))?;
    stream.write_all(&greeting.hello())?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, "it does not say who it is");
    let mut bytes = [0; 256];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        stream.set_read_timeout(Some(left))?;
        let n = match stream.read(&mut bytes[..greeting.wants()]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let refused = |e| io::Error::new(io::ErrorKind::PermissionDenied, e);
        let turn = greeting.take(&bytes[..n]).map_err(refused)?;
        stream.write_all(&turn.send)?;
        if let Some(card) = turn.met {
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(None)?;
            keep_alive(stream)?;
            return Ok(card);
        }
    }
}

/// Calls whom `own` means at one of these addresses, one after the other until one answers.
pub(super) fn call(addresses: &[SocketAddr], secret: Secret, own: Card) -> io::Result<TcpStream> {
    let until = Instant::now() + REACH_MAX;
    let mut last = io::Error::other("it is told no address");
    while Instant::now() < until && !addresses.is_empty() {
        for address in addresses {
            let called = TcpStream::connect_timeout(address, CALL_MAX)
                .and_then(|it| greet(&it, Side::Caller, secret, own).map(|_| it));
            match called {
                Ok(stream) => return Ok(stream),
                Err(e) => last = io::Error::new(e.kind(), format!("{address}: {e}")),
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_mean_this_host_elsewhere_are_told() {
        let told = |text: &str| is_reached(text.parse().unwrap());
        for good in ["10.1.2.3", "192.0.2.1", "2001:db8::1", "fd00::1"] {
            assert!(told(good), "{good}");
        }
        for bad in ["127.0.0.1", "169.254.1.1", "0.0.0.0", "::1", "fe80::1", "::"] {
            assert!(!told(bad), "{bad}");
        }
    }
}
