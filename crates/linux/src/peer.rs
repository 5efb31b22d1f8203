//! Credentials of the peer of a local socket.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The process that connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id as seen by this process; 0 if it is outside our PID namespace.
    pub pid: u32,
    /// Effective user id of the peer.
    pub uid: u32,
}

/// Credentials of the process that connected a socket, as the kernel recorded them then.
///
/// # Errors
/// As the kernel answers.
pub fn of(socket: &UnixStream) -> io::Result<Peer> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `peer`.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut bytes,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer {
        pid: u32::try_from(peer.pid).unwrap_or(0),
        uid: peer.uid,
    })
}

/// This process, as peers see it.
///
/// # Errors
/// No descriptors are left.
pub fn own() -> io::Result<Peer> {
    of(&UnixStream::pair()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_sockets_is_this_process_twice() {
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!(of(&one).unwrap().pid, std::process::id());
        assert_eq!(of(&one).unwrap(), of(&other).unwrap());
        assert_eq!(own().unwrap(), of(&one).unwrap());
    }
}
