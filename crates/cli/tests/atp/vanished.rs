//! `sdmac atp proxy` where a computer with a program vanishes, and where it is only slow.

use std::fs::{read_to_string, write};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{sleep, spawn};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::network::script;
use super::proxy::{HANGS, end};

/// a - r - b, with the client on a, both ends of the proxy on r, with room for one connection, and the server on b.
const PROXIES: &str = r#"
trap '[ $? = 0 ] || cat *.out *.err >&2' EXIT
program() { # NAME NAMESPACE: a part of this test there, in the background
    exec ip netns exec $2 env "$TEST" --ignored --exact --nocapture "vanished::$1" > $1.out 2>&1
}
proxy() { # NAME DESCRIPTORS FROM TO
    exec ip netns exec r sh -c "ulimit -n $2; exec \"\$SDMAC\" atp proxy $3 $4 --patience 2s --spacing 200us" > $1.out 2> $1.err
}
there() {
    for try in $(seq 400); do
        if [ -s "$1" ]; then return; fi
        sleep 0.05
    done
    echo "no $1" >&2; exit 1
}
proxy leave 64 atp:127.0.0.1:7800 tcp:10.0.2.2:9000 & leave=$!
proxy enter 34 tcp:10.0.1.1:8080 atp:127.0.0.1:7800 & enter=$!
there leave.err; there enter.err
program server b & server=$!
there serving
program client a & client=$!
there open
sleep $OPEN
ip -n $GONE link set e$GONE down
date +%s > begun
case $GONE in
    a) wait $server; kill -KILL $client;;
    b) wait $client; kill -KILL $server;;
esac
date +%s > ended
if [ $GONE = a ]; then # the place is free
    rm serving open
    export HOW=once
    program server b &
    there serving
    program client r &
    there open
fi
kill -INT $enter $leave
wait $enter; wait $leave
"#;

/// The program at the other end gets a reset soon, whatever the connection was doing, the end of the proxy says why, and the next one finds the place free.
#[test]
fn a_computer_that_vanishes_is_noticed() {
    for (gone, how, open_s, end, count) in [
        ("a", "idle", 0, "enter", 2),
        ("a", "half", 0, "enter", 2),
        ("a", "stream", 1, "enter", 2),
        ("a", "full", 2, "enter", 2),
        ("b", "idle", 0, "leave", 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("export GONE={gone} HOW={how} OPEN={open_s}\n{PROXIES}");
        let Some(_) = script(dir.path(), &text, 0, 0) else {
            return;
        };
        let read = |name: &str| read_to_string(dir.path().join(name)).unwrap();
        let second = |name| read(name).trim().parse::<u64>().unwrap();
        let took = second("ended") - second("begun");
        let (why, ended) = (read(&format!("{end}.err")), read("enter.out"));
        println!("{gone}, {how}: {took} s: {why}");
        // 3 s; with the window closed the kernel asks no sooner than after as long again
        assert!(took < 15, "{gone}, {how}: {took} s, {why}");
        assert!(why.contains("the connection of TCP: "), "{gone}, {how}: {why}");
        let early = format!("{count} connection{}, 1 of", if count == 1 { "" } else { "s" });
        assert!(ended.starts_with(&early), "{gone}, {how}: {ended}");
    }
}

/// Its window is closed for longer than patience, or nothing goes: it is there all the same.
#[test]
fn a_slow_reader_and_an_idle_program_stay() {
    const OCTETS: usize = 20_000_000;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut far, between) = end(
        "atp:127.0.0.1:0",
        &format!("tcp:{}", server.local_addr().unwrap()),
    );
    let (mut near, at) = end("tcp:127.0.0.1:0", &format!("atp:{between}"));
    let mut pairs = [(); 3].map(|()| {
        let client = TcpStream::connect(&at).unwrap();
        let (served, _) = server.accept().unwrap();
        for tcp in [&client, &served] {
            tcp.set_read_timeout(Some(HANGS)).unwrap();
        }
        (client, served)
    });
    // down, and up
    let [mut down, mut up] = [&pairs[0].1, &pairs[1].0].map(|tcp| tcp.try_clone().unwrap());
    let writers = [
        spawn(move || down.write_all(&vec![1; OCTETS])),
        spawn(move || up.write_all(&vec![2; OCTETS])),
    ];
    sleep(Duration::from_secs(8));
    let (client, served) = &pairs[2];
    for (mut from, mut to) in [(client, served), (served, client)] {
        from.write_all(b"hello").unwrap();
        to.read_exact(&mut [0; 5]).unwrap();
    }
    let mut octets = vec![0; OCTETS];
    pairs[0].0.read_exact(&mut octets).unwrap();
    assert!(octets.iter().all(|o| *o == 1));
    pairs[1].1.read_exact(&mut octets).unwrap();
    assert!(octets.iter().all(|o| *o == 2));
    for writer in writers {
        writer.join().unwrap().unwrap();
    }
    for child in [&mut near, &mut far] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// What the connection is doing; nothing where this is no part of another test.
fn how() -> Option<String> {
    std::env::var("HOW").ok()
}

/// Until the connection is reset; not for ever.
fn wait_for_reset(tcp: &TcpStream) {
    let most = Timespec {
        tv_sec: 30,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(tcp, PollFlags::empty())];
    // without its error, where a writer has seen that
    assert_eq!(poll(&mut fds, Some(&most)), Ok(1));
}

#[test]
#[ignore = "a part of another test"]
fn client() {
    let Some(how) = how() else { return };
    let mut tcp = TcpStream::connect("10.0.1.1:8080").unwrap();
    tcp.set_read_timeout(Some(HANGS)).unwrap();
    tcp.write_all(b"hello").unwrap();
    tcp.read_exact(&mut [0; 5]).unwrap();
    match how.as_str() {
        "half" => tcp.shutdown(Shutdown::Write).unwrap(),
        "stream" => {
            let mut tcp = tcp.try_clone().unwrap();
            spawn(move || while tcp.read(&mut [0; 10_000]).is_ok_and(|n| n > 0) {});
        }
        _ => {}
    }
    write("open", "yes").unwrap();
    if how != "once" {
        wait_for_reset(&tcp);
    }
}

#[test]
#[ignore = "a part of another test"]
fn server() {
    let Some(how) = how() else { return };
    let listener = TcpListener::bind("10.0.2.2:9000").unwrap();
    write("serving", "yes").unwrap();
    let (mut tcp, _) = listener.accept().unwrap();
    tcp.read_exact(&mut [0; 5]).unwrap();
    tcp.write_all(b"hello").unwrap();
    if how == "stream" || how == "full" {
        let mut tcp = tcp.try_clone().unwrap();
        spawn(move || while tcp.write_all(&[0; 10_000]).is_ok() {});
    }
    if how != "once" {
        wait_for_reset(&tcp);
    }
}
