//! What the engine is run against: little servers of the tests' own, each connection on a thread.

pub mod http1;
pub mod http2;
pub mod nginx;
pub mod tls;

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::thread;

/// A server that hands each connection to `serve` on a thread of its own; its port. It lives as long as the process.
pub fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            let _ = stream.set_nodelay(true);
            let _ = thread::Builder::new().stack_size(256 * 1024).spawn(move || serve(stream));
        }
    });
    port
}

/// A port that refuses connections for as long as the process lives: it is in use by a client, so that no other server
/// gets it meanwhile.
pub fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let port = client.local_addr().unwrap().port();
    std::mem::forget((listener, client));
    port
}

/// Closes so that the client sees a reset: nothing lingers.
pub fn reset(stream: TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: `linger` lives through the call and its size is given.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
    drop(stream);
}
