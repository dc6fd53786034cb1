//! How a driver works, and what it has counted.

use crate::codec::Firmware;
use frame::MacAddr;
use radio::Duration;

/// How a driver works. The numbers are Linux's where it has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Centre frequency to begin with, MHz.
    pub mhz: u16,
    /// Its address; `None`: that of its EEPROM.
    pub address: Option<MacAddr>,
    /// Requests that may be open at once, as far as there is memory for them.
    pub requests: u16,
    /// Reads that are posted at ep 2 at once, 1 to 255. One makes the stick group what it has to say.
    pub reads: u8,
    /// Frames of one queue that the stick has at once, 1 or more. What is still here can be taken back and expires in
    /// time; with two the stick never waits for the USB.
    pub window: u8,
    /// After this long without a completion the next transfer is begun: a completion can be lost.
    pub completion_timeout: Duration,
    /// After this long without the response to a command the stick is restarted.
    pub response_timeout: Duration,
    /// After this long without the status of a frame the stick is restarted.
    pub status_timeout: Duration,
    /// After this long without a response or event a stick that is up is asked whether it is there. Linux's driver, which reads
    /// counters every 30 s, learns it by that.
    pub keep_alive: Duration,
    /// For one control transfer.
    pub control_timeout: Duration,
    /// For the stick to be back after a reset.
    pub reset_timeout: Duration,
    /// For the firmware to say that it has started.
    pub boot_timeout: Duration,
    /// How long to rest after a restart that failed; doubles with each, up to 64 times this.
    pub rest: Duration,
}

impl Config {
    /// Channel 1; 16 reads; two frames of a queue on the stick; responses within a second; a question after ten.
    pub const DEFAULT: Config = Config {
        mhz: 2_412,
        address: None,
        requests: u16::MAX,
        reads: 16,
        window: 2,
        completion_timeout: Duration::from_ms(5),
        response_timeout: Duration::from_ms(1_000),
        status_timeout: Duration::from_ms(5_500),
        keep_alive: Duration::from_ms(10_000),
        control_timeout: Duration::from_ms(200),
        reset_timeout: Duration::from_ms(2_000),
        boot_timeout: Duration::from_ms(1_000),
        rest: Duration::from_ms(100),
    };
}

impl Default for Config {
    /// [`Config::DEFAULT`].
    fn default() -> Self {
        Config::DEFAULT
    }
}

/// None: nothing is uploaded.
pub(super) const NO_FIRMWARE: Firmware<'static> = Firmware {
    image: &[],
    features: 0,
    address: 0,
    beacon_address: 0,
    beacon_octets: 0,
    block_octets: 0,
    max_transfer_octets: 0,
    descriptors: 0,
    command_buffers: 0,
    interfaces: 0,
    date: None,
    checked: false,
};

/// Why a stick was restarted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// A sequence number was skipped: responses or events were lost.
    LostResponse,
    /// A response has another length than its command asks for.
    InvalidResponse,
    /// A command was not answered.
    NoResponse,
    /// A frame was not reported.
    NoStatus,
    /// The firmware says so: its watchdog, or a fatal error.
    Firmware,
    /// It did not come up.
    NoBoot,
    /// The USB did not take something.
    Usb,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 7] = [
        Reason::LostResponse,
        Reason::InvalidResponse,
        Reason::NoResponse,
        Reason::NoStatus,
        Reason::Firmware,
        Reason::NoBoot,
        Reason::Usb,
    ];
}

/// What a driver has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Commands sent.
    pub commands: u64,
    /// Frames handed to the stick.
    pub frames: u64,
    /// Responses and events that came.
    pub responses: u64,
    /// Responses that answer nothing, and statuses of frames that the stick does not have.
    pub strange: u64,
    /// Frames told as indications or beacons.
    pub indications: u64,
    /// Repetitions that were not told.
    pub duplicates: u64,
    /// Received frames for which there was no buffer.
    pub overflows: u64,
    /// Received frames that were bad, or cannot be read.
    pub unreadable: u64,
    /// Octets from ep 2 that are neither response nor frame.
    pub damaged_octets: u64,
    /// Transfers from ep 2 that were longer than there was room for: what was at their ends is lost.
    pub cut_transfers: u64,
    /// Completions that did not come in time, or not before what they were for had its answer.
    pub lost_completions: u64,
    /// Completions that came for no transfer: late ones among them.
    pub late_completions: u64,
    /// Answers for which there was no room: the protocol above has more open than the contract allows.
    pub lost_answers: u64,
    /// Restarts by [`Reason`].
    pub restarts: [u64; Reason::ALL.len()],
}

impl Counts {
    /// Nothing.
    pub(super) const NONE: Counts = Counts {
        commands: 0,
        frames: 0,
        responses: 0,
        strange: 0,
        indications: 0,
        duplicates: 0,
        overflows: 0,
        unreadable: 0,
        damaged_octets: 0,
        cut_transfers: 0,
        lost_completions: 0,
        late_completions: 0,
        lost_answers: 0,
        restarts: [0; Reason::ALL.len()],
    };

    /// Restarts for one reason.
    pub fn restarts_for(&self, reason: Reason) -> u64 {
        self.restarts[reason as usize]
    }

    /// Restarts for whatever reason.
    pub fn all_restarts(&self) -> u64 {
        self.restarts.iter().sum()
    }
}
