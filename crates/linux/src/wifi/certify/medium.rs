//! A medium for the radios of mac80211_hwsim, in place of their own: it makes every try that the driver was told to
//! make, and lets each be heard. Hwsim's own makes one, whatever was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use frame::mac::header::{Header, set_retry};
use rustix::net::netlink::GENERIC;

use crate::hwsim::{self, Delivery, Event, Radio, Sent, Series, Status};
use crate::netlink::Socket;

/// How long the medium waits before it looks whether it is to stop, ns.
const GLANCE_NS: u64 = 20_000_000;
const SIGNAL_DBM: i8 = -50;

/// The medium, until it is dropped.
pub(super) struct Medium {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Medium {
    /// Takes the place of hwsim's own for `radios` radios.
    pub fn start(radios: u8) -> Medium {
        // The first socket of a process gets its number as port, in each protocol; and hwsim (seen in 6.1) takes the
        // end of any socket with the medium's port for the medium's own end, routing sockets included.
        let _first = Socket::open(Some(GENERIC)).unwrap();
        let mut medium = hwsim::Medium::open().unwrap();
        let mut all = medium.radios().unwrap();
        all.truncate(radios.into());
        medium.register().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut air = Air { medium, radios: all };
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                air.serve();
            }
        });
        Medium {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

struct Air {
    medium: hwsim::Medium,
    radios: Vec<Radio>,
}

impl Air {
    /// Serves what has come, or nothing for a while.
    fn serve(&mut self) {
        self.medium.wait(hwsim::Medium::now_ns() + GLANCE_NS).unwrap();
        while let Some(event) = self.medium.receive().unwrap() {
            if let Event::Sent(sent) = event {
                self.play(&sent);
            }
        }
    }

    fn play(&mut self, sent: &Sent) {
        let mut frame = sent.frame.clone();
        let to = Header::parse(&frame).unwrap().receiver();
        // Hwsim tells its medium nothing of monitors, so an active one and a plain one are the same here.
        let answers = |radio: &Radio| radio.key() != sent.radio && radio.address == to;
        let acked = !sent.no_ack() && self.radios.iter().any(answers);
        let once = acked || sent.no_ack() || to.is_group();
        let mut done = [Series::NONE; hwsim::MAX_SERIES];
        'series: for (done, plan) in done.iter_mut().zip(sent.plan) {
            if plan.index < 0 {
                break;
            }
            *done = Series { tries: 0, ..plan };
            for _ in 0..plan.tries {
                done.tries += 1;
                self.copies(sent, &frame, plan.index);
                if once {
                    break 'series;
                }
                set_retry(&mut frame, true).unwrap();
            }
        }
        let status = Status {
            radio: sent.radio,
            cookie: sent.cookie,
            flags: sent.flags,
            acked,
            signal_dbm: SIGNAL_DBM,
            done,
        };
        self.medium.report(&status).unwrap();
    }

    fn copies(&mut self, sent: &Sent, frame: &[u8], rate: i8) {
        let delivery = Delivery {
            frame,
            rate_index: rate.unsigned_abs().into(),
            signal_dbm: SIGNAL_DBM,
            mhz: sent.mhz.unwrap(),
        };
        for radio in self.radios.iter().filter(|radio| radio.key() != sent.radio) {
            // The kernel refuses a copy: that radio is on another channel.
            self.medium.deliver(radio.key(), &delivery).unwrap();
        }
    }
}
