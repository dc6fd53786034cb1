//! The side of a radio that is not on the way of a frame: its interfaces, its channel and power, and the news of them. It asks the
//! kernel and waits for it, and allocates; so it belongs to an ordinary thread while a host runs ([`super::clerk`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use frame::MacAddr;
use frame::rate::Width;
use radio::{Attribute, Refusal, SetError};

use super::error::Error;
use super::filter::{self, Wanted};
use super::monitor::{Monitors, kind};
use super::nl80211::{Interface, MONITOR};
use super::softmac::SoftMac;
use super::watch::Watch;
use super::wiphy::{Rates, Wiphy};
use crate::sys::packet::attach_filter;

/// Addresses of other interfaces that a view has room for.
const NEIGHBOURS: usize = 32;

/// What the way of a frame needs to know of a radio, as it was when it was read last: of a fixed size, so that it goes from
/// one thread to the other without the heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    /// Interface and channel let frames through.
    pub state: Result<(), Refusal>,
    /// Centre frequency of its channel.
    pub mhz: u16,
    /// What can be sent there; `None` if the radio has no such channel.
    pub rates: Option<Rates>,
    pub tx_power_dbm: Option<i8>,
    pub wanted: Wanted,
    neighbours: [MacAddr; NEIGHBOURS],
    neighbour_count: usize,
}

impl View {
    pub fn new(mhz: u16, tx_power_dbm: Option<i8>, wanted: Wanted) -> View {
        View {
            state: Ok(()),
            mhz,
            rates: None,
            tx_power_dbm,
            wanted,
            neighbours: [MacAddr::ZERO; NEIGHBOURS],
            neighbour_count: 0,
        }
    }

    /// Addresses of the radio's other interfaces that are up. Of more than there is room for the rest are strangers.
    pub fn neighbours(&self) -> &[MacAddr] {
        &self.neighbours[..self.neighbour_count]
    }

    fn add_neighbour(&mut self, address: MacAddr) {
        if let Some(place) = self.neighbours.get_mut(self.neighbour_count) {
            *place = address;
            self.neighbour_count += 1;
        }
    }
}

/// What news there was of a radio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Something has changed, and all was read again.
    pub any: bool,
    /// Sockets that had no room for all of it.
    pub overflows: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Keeper {
    monitors: Monitors,
    watch: [Watch; 2],
    wiphy: Wiphy,
    /// The socket whose filter says what comes up.
    received: OwnedFd,
    /// Of its channels.
    width: Width,
    /// The interface of the user's that sends, if it is not ours.
    ordinary: Option<Interface>,
    /// Who is told of a new channel.
    softmac: Option<SoftMac>,
    view: View,
}

impl Keeper {
    /// Of a radio whose interfaces are there. `ordinary`: the one that sends, if it is the user's.
    pub fn new(
        monitors: Monitors,
        wiphy: Wiphy,
        received: OwnedFd,
        width: Width,
        ordinary: Option<Interface>,
        softmac: Option<SoftMac>,
        view: View,
    ) -> Result<Keeper, Error> {
        Ok(Keeper {
            watch: monitors.control.watch(wiphy.index)?,
            monitors,
            wiphy,
            received,
            width,
            ordinary,
            softmac,
            view,
        })
    }

    /// The radio as it was read last.
    pub fn view(&self) -> View {
        self.view
    }

    /// What becomes readable when there is news.
    pub fn watches(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watch.iter().map(AsFd::as_fd)
    }

    /// Takes in what news there is.
    pub fn news(&mut self) -> News {
        let mut news = News::default();
        for watch in &self.watch {
            match watch.drain() {
                Ok(any) => news.any |= any,
                Err(()) => (news.any, news.overflows) = (true, news.overflows + 1),
            }
        }
        if news.any {
            self.refresh();
        }
        news
    }

    /// Whether the interface that sends, and the one that shows what was sent, are there and up.
    pub fn is_up(&mut self) -> bool {
        let Monitors {
            main, cook, control, ..
        } = &mut self.monitors;
        let mut all = [Some(main), cook.as_mut()].into_iter().flatten();
        all.all(|i| control.is_up(i.index).unwrap_or(false))
    }

    /// Reads again what may have changed: whether the interface is up and its channel open for sending, and who else
    /// uses the radio.
    pub fn refresh(&mut self) {
        self.view.state = self.look().unwrap_or(Err(Refusal::NoAdapter));
    }

    fn look(&mut self) -> Option<Result<(), Refusal>> {
        let control = &mut self.monitors.control;
        if !control.is_up(self.monitors.main.index).ok()? {
            return Some(Err(Refusal::NoAdapter));
        }
        let index = self.wiphy.index;
        self.wiphy = control.wiphys().ok()?.into_iter().find(|w| w.index == index)?;
        let mut all = control.interfaces().ok()?;
        all.retain(|i| i.wiphy == index);
        let indexes: Vec<u32> = all.iter().map(|i| i.index).collect();
        let _ = attach_filter(self.watch[1].as_fd(), &filter::links(&indexes)); // Else news of others come, too.
        self.view.neighbour_count = 0;
        for other in all.iter().filter(|i| i.kind != MONITOR) {
            if control.is_up(other.index).unwrap_or(false) {
                self.view.add_neighbour(other.address);
            }
        }
        let channel = self.wiphy.channel(self.view.mhz);
        self.view.rates = channel.map(|(band, _)| band.rates());
        let (_, channel) = channel?;
        if let Some(ours) = &self.ordinary {
            let now = all.iter().find(|i| i.index == ours.index)?;
            let link = control.link(ours.index).ok()?;
            // In another network, on another channel or with another address than when it was opened, it is another one.
            let as_it_was = (now.kind, now.address, now.mhz) == (ours.kind, ours.address, ours.mhz);
            let sends = link.is_up && link.has_carrier && as_it_was;
            return Some(if sends { Ok(()) } else { Err(Refusal::NoAdapter) });
        }
        Some(if channel.may_send() {
            Ok(())
        } else {
            Err(Refusal::ChannelForbidden)
        })
    }

    /// Sets the channel.
    ///
    /// # Errors
    /// In a few words.
    pub fn tune(&mut self, mhz: u16) -> Result<(), &'static str> {
        let Some((band, channel)) = self.wiphy.channel(mhz) else {
            return Err("it has no such channel");
        };
        if channel.is_disabled {
            return Err("the rules of the country forbid it; set the right country (iw reg set)");
        }
        let kind = kind(band, channel, self.width)?;
        self.monitors.set_channel(mhz, kind)?;
        self.view.mhz = mhz;
        if let Some(softmac) = &self.softmac {
            softmac.tuned(mhz);
        }
        Ok(())
    }

    /// Sets an attribute that takes the kernel; it is done when this returns.
    pub fn set(&mut self, attribute: Attribute) -> Result<(), SetError> {
        match attribute {
            Attribute::Channel(mhz) => {
                let known = self.wiphy.channel(mhz).map(|(_, channel)| channel.is_disabled);
                if known.ok_or(SetError::OutOfRange)? {
                    return Err(SetError::Forbidden);
                }
                self.tune(mhz).map_err(|_| SetError::NotSupported)?;
                self.refresh();
            }
            Attribute::TxPower(dbm) => {
                // More than is allowed there mac80211 would take, and send with less.
                let here = self.wiphy.channel(self.view.mhz);
                let most = here.and_then(|(_, channel)| channel.max_dbm).unwrap_or(i8::MAX);
                if !(0..=most).contains(&dbm) {
                    return Err(SetError::OutOfRange);
                }
                self.set_tx_power(dbm).map_err(|e| set_error(&e))?;
            }
            Attribute::Bssid(bssid) => self.want(Wanted {
                bssid,
                ..self.view.wanted
            })?,
            Attribute::Promiscuous(promiscuous) => self.want(Wanted {
                promiscuous,
                ..self.view.wanted
            })?,
            _ => return Err(SetError::NotSupported),
        }
        Ok(())
    }

    /// Sets the transmit power of the radio, until it is given back.
    pub fn set_tx_power(&mut self, dbm: i8) -> io::Result<()> {
        self.monitors.set_tx_power(dbm)?;
        self.view.tx_power_dbm = Some(dbm);
        Ok(())
    }

    fn want(&mut self, wanted: Wanted) -> Result<(), SetError> {
        let program = filter::received(&wanted);
        attach_filter(self.received.as_fd(), &program).map_err(|e| set_error(&e))?;
        self.view.wanted = wanted;
        Ok(())
    }
}

fn set_error(error: &io::Error) -> SetError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => SetError::NoPermission,
        Some(libc::EINVAL | libc::ERANGE) => SetError::OutOfRange,
        Some(libc::ENODEV) => SetError::NotFound,
        _ => SetError::NotSupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{Adapter, AdapterConfig, Control, simulated_radios};

    /// More news than a socket holds, since nobody reads them meanwhile: all is read again. Runs in the lab.
    #[test]
    fn news_that_overflow_are_read_again() {
        let Some(radios) = simulated_radios(1) else { return };
        let name = &radios.names[0];
        let mut adapter = Adapter::open(AdapterConfig::new(name, 2412)).unwrap();
        let mut keeper = adapter.give_keeper().unwrap();
        keeper.news();
        assert_eq!(keeper.news(), News::default());
        let mut control = Control::open().unwrap();
        let radio = control.wiphy(name).unwrap().index;
        let all = control.interfaces().unwrap();
        let ordinary = all
            .iter()
            .find(|i| i.wiphy == radio && i.name.starts_with("wlan"));
        let (index, address) = ordinary.map(|i| (i.index, i.address)).unwrap();
        for _ in 0..400 {
            control.set_up(index, false).unwrap();
            control.set_up(index, true).unwrap();
        }
        let news = keeper.news();
        assert!(news.any && news.overflows > 0, "{news:?}");
        assert_eq!(keeper.view().neighbours(), [address], "as it is now");
        while keeper.news().any {} // What there was room for.
        control.set_up(index, false).unwrap();
        assert_eq!(
            keeper.news(),
            News {
                any: true,
                overflows: 0
            }
        );
        assert!(keeper.view().neighbours().is_empty());
    }

    #[test]
    fn a_view_has_room_for_so_many_neighbours_and_no_more() {
        let wanted = Wanted {
            me: MacAddr::local(1),
            bssid: MacAddr::ZERO,
            promiscuous: false,
        };
        let mut view = View::new(2412, None, wanted);
        (0..100).for_each(|n| view.add_neighbour(MacAddr::local(n)));
        assert_eq!(view.neighbours().len(), NEIGHBOURS);
        assert!(view.neighbours().contains(&MacAddr::local(31)));
        assert!(!view.neighbours().contains(&MacAddr::local(32)));
    }
}
