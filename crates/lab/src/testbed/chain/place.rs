//! One node: a thread in a network namespace of its own, with a radio in an ad hoc network, an address, and routes to all
//! others.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use frame::{MacAddr, Rate};
use linux::inet::{self, Inet};
use linux::wifi::{AdHoc, Control, Interface, OrdinarySocket};

use super::ChainError;

/// The ad hoc network. With its BSSID given, Linux looks for nobody.
const NAME: &str = "sdmac-chain";
const BSSID: MacAddr = MacAddr::local(0x0c4a_1717);
/// Until an interface is in its network.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(50);
/// An EtherType that nobody has (IEEE 802, local experimental 1).
const NOBODYS: [u8; 2] = [0x88, 0xb5];

/// What a node is to the kernel: it forwards, tells nobody of shorter ways, and is silent by itself.
const SETTINGS: [(&str, &str); 5] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
];

/// The address of a node.
pub(super) fn address(node: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 7, 0, 1)) + node)
}

type Work = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own, which does what it is given.
pub(super) struct Place {
    /// Its number in the kernel, which names the namespace.
    pub thread: u32,
    work: mpsc::Sender<Work>,
}

impl Place {
    /// A new one.
    pub fn new() -> io::Result<Place> {
        let (work, list) = mpsc::channel::<Work>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let number = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let entered = inet::enter_new_network().map(|()| number());
            let is_there = entered.is_ok();
            let _ = tell.send(entered);
            if is_there {
                list.iter().for_each(|work| work());
            }
        });
        let thread = told.recv().expect("the thread tells before it ends")?;
        Ok(Place { thread, work })
    }

    /// Does something there, and waits for it. Sockets, threads and processes that it makes stay there.
    pub fn run<T: Send + 'static>(&self, what: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = mpsc::channel();
        let work = Box::new(move || drop(tell.send(what())));
        self.work.send(work).expect("the thread lives as long as this");
        told.recv().expect("what is done there does not panic")
    }
}

/// What a node has to know to be one of a chain.
#[derive(Clone, Debug)]
pub(super) struct Post {
    /// Its number.
    pub node: u32,
    /// Addresses of the stations of all nodes.
    pub stations: Vec<MacAddr>,
    /// Channel.
    pub mhz: u16,
    /// Rate of all data.
    pub rate: Rate,
}

/// Makes this thread's namespace a node, with the radio that is there. Gives the name of its interface, and a socket on it.
pub(super) fn settle(post: &Post) -> Result<(String, OrdinarySocket), ChainError> {
    let node = post.node;
    let radio = |error| ChainError::Radio { node, error };
    let other = |what| move |error| ChainError::Node { node, what, error };
    let mut control = Control::open().map_err(radio)?;
    let interface = control.interfaces().map_err(radio)?.into_iter().next();
    let interface = interface.ok_or_else(|| other("find its radio")(io::ErrorKind::NotFound.into()))?;
    let network = AdHoc {
        ssid: NAME,
        mhz: post.mhz,
        bssid: Some(BSSID),
    };
    control.join_ad_hoc(&interface, &network).map_err(radio)?;
    wait_for_carrier(&interface).map_err(other("join the ad hoc network"))?;
    control.pin_rate(&interface, post.mhz, post.rate).map_err(radio)?;
    lead_ways(post, &interface).map_err(other("set addresses and routes"))?;
    let socket = OrdinarySocket::open(&interface.name).map_err(radio)?;
    Ok((interface.name, socket))
}

/// To be done before there is an interface: it takes over what holds by default.
pub(super) fn set_up() -> io::Result<()> {
    for (name, value) in SETTINGS {
        fs::write(format!("/proc/sys/net/{name}"), value)?;
    }
    Inet::open()?.set_loopback_up()
}

fn wait_for_carrier(interface: &Interface) -> io::Result<()> {
    let mut inet = Inet::open()?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if inet.is_running(interface.index)? {
            return Ok(());
        }
        thread::sleep(GLANCE);
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Its address, and a way to each of the others: through the next node, whose station is known.
fn lead_ways(post: &Post, interface: &Interface) -> io::Result<()> {
    let mut inet = Inet::open()?;
    inet.add_address(interface.index, address(post.node))?;
    let last = post.stations.len() as u32 - 1;
    let before = post.node.checked_sub(1);
    let after = Some(post.node + 1).filter(|n| *n <= last);
    for next in [before, after].into_iter().flatten() {
        inet.set_neighbour(interface.index, address(next), post.stations[next as usize])?;
        inet.set_route(interface.index, address(next), None)?;
    }
    for to in 0..=last {
        let next = if to < post.node { before } else { after };
        if let Some(next) = next.filter(|next| *next != to && to != post.node) {
            inet.set_route(interface.index, address(to), Some(address(next)))?;
        }
    }
    Ok(())
}

/// A frame to all from this station: who hears it knows that the station is there.
pub(super) fn hello(from: MacAddr) -> Vec<u8> {
    [&MacAddr::BROADCAST.0[..], &from.0, &NOBODYS, &[0; 46]].concat()
}
