//! The kernel's TCP, both ends on threads of this process.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::{BLOCK, Cost, LOCAL, OCTETS, cost, thread_ns};

/// Moves [`OCTETS`].
pub fn tcp() -> Cost {
    let listener = TcpListener::bind(LOCAL).expect("a port");
    let to = listener.local_addr().expect("bound");
    let reads = thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a call");
        let (mut block, mut all) = (vec![0; BLOCK], 0);
        while let Ok(n @ 1..) = tcp.read(&mut block) {
            all += n;
        }
        assert_eq!(all, OCTETS);
        thread_ns()
    });
    let mut tcp = TcpStream::connect(to).expect("somebody there");
    let block = vec![7; BLOCK];
    let sends = cost(|| {
        for _ in 0..OCTETS / BLOCK {
            tcp.write_all(&block).expect("somebody there");
        }
        drop(tcp);
    });
    [sends, reads.join().expect("all came")]
}
