//! How long a host and its adapter take: from the call to the air, from the air back to the caller, and from a
//! timer's expiry to the program that waited for it.
//!
//! The way of one transmission is that of the SDMAC paper (Cena et al. 2018, Table II):
//!
//! ```text
//! t1 --api--> t2 --driver, independent--> t3 --driver, dependent--> t4 --hardware--> first bit on the air
//! end of the exchange --hardware--> t5 --isr--> t6 --driver, dependent--> t7 --independent--> t8 --api--> t9
//! ```
//!
//! A [`Profile`] holds what is known of each part. [`HostModel`] draws from it: first the request, and when the
//! exchange is over and its outcome is known, the confirm. The software parts of one transmission depend on each
//! other through a Gaussian copula with a load factor per path; the adapter is independent of the software.
//!
//! What the model leaves out: consecutive transmissions are independent (a busy host is busy for a while in
//! reality), and so is the adapter from the load of the bus.

mod build;
mod copula;
mod distribution;
mod normal;
mod profile;
mod statistics;

pub use distribution::{Distribution, Knots, KnotsError};
pub use normal::Random;
pub use profile::{
    Basis, Component, Confirm, ConfirmPath, Correlation, Dma, Hardware, Problem, Profile, ProfileError,
    RequestPath, Source, Timers,
};
pub use statistics::{Fit, Statistics, StatisticsError};

use distribution::{Curve, whole};
use normal::Normal;

/// How an exchange ended at the originator, which decides how it is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A valid ACK came.
    Acked,
    /// No frame began before the ACK timeout.
    Timeout,
    /// A frame began in time and turned out not to be a valid ACK.
    AckCorrupt,
}

/// The way a program waits for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// `clock_nanosleep` with an absolute time.
    Sleep,
    /// A blocking read of a timerfd.
    Timerfd,
    /// A busy loop that reads the clock.
    Spin,
}

/// One draw of the way from the call to the air, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestSample {
    /// From the call to the first instruction of the driver.
    pub t1_t2_ns: u64,
    /// The device-independent part of the driver.
    pub t2_t3_ns: u64,
    /// The device-dependent part, until the frame is in the ring buffer.
    pub t3_t4_ns: u64,
    /// From the ring buffer to the first bit on an idle medium.
    pub hardware_ns: u64,
    /// What the confirm of this transmission depends on.
    pub load: Load,
}

/// The state of the host during one transmission, passed from the request to its confirm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    software: f64,
    hardware: f64,
}

/// One draw of the way from the end of the exchange to the caller, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmSample {
    /// From the end of the exchange on the air to the interrupt routine. The exchange ends with the last bit of
    /// the ACK, or of whatever came instead, or with the ACK timeout.
    pub hardware_ns: u64,
    /// The interrupt routine, until the tasklet runs.
    pub t5_t6_ns: u64,
    /// The device-dependent part of the driver.
    pub t6_t7_ns: u64,
    /// The device-independent part of the driver.
    pub t7_t8_ns: u64,
    /// Until the caller has the outcome.
    pub t8_t9_ns: u64,
}

impl RequestSample {
    /// t1 to t4.
    pub fn software_ns(&self) -> u64 {
        self.t1_t2_ns + self.t2_t3_ns + self.t3_t4_ns
    }

    /// t1 to the first bit on the air.
    pub fn total_ns(&self) -> u64 {
        self.software_ns() + self.hardware_ns
    }
}

impl ConfirmSample {
    /// t5 to t9.
    pub fn software_ns(&self) -> u64 {
        self.t5_t6_ns + self.t6_t7_ns + self.t7_t8_ns + self.t8_t9_ns
    }

    /// The end of the exchange to t9.
    pub fn total_ns(&self) -> u64 {
        self.hardware_ns + self.software_ns()
    }
}

/// Exact means of one transmission with a given outcome, in ns: what a large number of draws tends to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// t1 to t4 (T_sw_req of the paper).
    pub request_ns: f64,
    /// The adapter, both ways (T_hw).
    pub hardware_ns: f64,
    /// t5 to t9 (T_sw_con).
    pub confirm_ns: f64,
}

impl Means {
    /// The overhead beyond the time on the air (T_SDMAC).
    pub fn total_ns(&self) -> f64 {
        self.request_ns + self.hardware_ns + self.confirm_ns
    }
}

/// A component whose published statistics no distribution of our shape has, and by how much it misses them.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The component, as a TOML key.
    pub component: String,
    /// Mean of the model less stated mean, in ns.
    pub mean_ns: f64,
    /// Standard deviation of the model less the stated one, in ns.
    pub sd_ns: f64,
}

/// Draws latencies. Some 200 kB of tables; drawing neither allocates nor branches on the profile.
#[derive(Clone, Debug)]
pub struct HostModel {
    normal: Normal,
    request: SoftwarePath<3>,
    hardware_request: Curve,
    /// By outcome: the adapter on the way back, at the same normal number as on the way there.
    hardware_confirm: [Curve; 2],
    confirm: [SoftwarePath<4>; 3],
    /// The confirm path's load factor is this times the request path's, plus this times a number of its own.
    coupling: [f64; 2],
    dma: Option<Dma>,
    timers: [Distribution; 3],
    residuals: Vec<Residual>,
}

/// The parts of a software path. Part i sees the normal number `common * load + own * (a number of its own)`.
#[derive(Clone, Debug)]
struct SoftwarePath<const N: usize> {
    parts: [Curve; N],
    common: f64,
    own: f64,
}

impl<const N: usize> SoftwarePath<N> {
    #[inline]
    fn draw(&self, normal: Normal, load: f64, random: &mut impl Random) -> [u64; N] {
        std::array::from_fn(|i| whole(self.parts[i].at(self.common * load + self.own * normal.draw(random))))
    }

    fn mean_ns(&self) -> f64 {
        self.parts.iter().map(|part| part.moments().0).sum()
    }
}

impl HostModel {
    /// Solves the profile's numbers for the tables and correlations. Takes some 50 ms; share the result.
    pub fn new(profile: &Profile) -> Result<Self, ProfileError> {
        build::Builder::new(profile).model()
    }

    /// Draws the way of a frame with `octets` octets of payload to the air. Five words of `random`.
    #[inline]
    pub fn sample_request(&self, random: &mut impl Random, octets: usize) -> RequestSample {
        let load = Load {
            software: self.normal.draw(random),
            hardware: self.normal.draw(random),
        };
        let [t1_t2_ns, t2_t3_ns, t3_t4_ns] = self.request.draw(self.normal, load.software, random);
        let hardware_ns = whole(self.hardware_request.at(load.hardware) + self.prefix_ns(octets));
        RequestSample {
            t1_t2_ns,
            t2_t3_ns,
            t3_t4_ns,
            hardware_ns,
            load,
        }
    }

    /// Draws the way of the outcome back to the caller of the transmission with this `load`. Five words.
    #[inline]
    pub fn sample_confirm(&self, random: &mut impl Random, load: Load, outcome: Outcome) -> ConfirmSample {
        let software = self.coupling[0] * load.software + self.coupling[1] * self.normal.draw(random);
        let path = &self.confirm[outcome as usize];
        let [t5_t6_ns, t6_t7_ns, t7_t8_ns, t8_t9_ns] = path.draw(self.normal, software, random);
        let hardware = &self.hardware_confirm[usize::from(outcome == Outcome::Timeout)];
        let hardware_ns = whole(hardware.at(load.hardware));
        ConfirmSample {
            hardware_ns,
            t5_t6_ns,
            t6_t7_ns,
            t7_t8_ns,
            t8_t9_ns,
        }
    }

    /// Draws the way of a received frame, from its last bit on the air to a program that waits for it. Six words.
    ///
    /// An assumption: the paper did not measure reception. The confirm of an acked frame begins with a received
    /// frame too (the ACK) and takes the same interrupt, tasklet and character device, so its parts stand in.
    #[inline]
    pub fn sample_indication(&self, random: &mut impl Random) -> ConfirmSample {
        let load = Load {
            software: self.normal.draw(random),
            hardware: self.normal.draw(random),
        };
        let [t5_t6_ns, t6_t7_ns, t7_t8_ns, t8_t9_ns] =
            self.confirm[0].draw(self.normal, load.software, random);
        let hardware_ns = whole(self.hardware_confirm[0].at(load.hardware));
        ConfirmSample {
            hardware_ns,
            t5_t6_ns,
            t6_t7_ns,
            t7_t8_ns,
            t8_t9_ns,
        }
    }

    /// Draws by how much a program wakes up later than it asked for, in ns. One word.
    #[inline]
    pub fn sample_lateness_ns(&self, random: &mut impl Random, wait: Wait) -> u64 {
        self.timers[wait as usize].sample_ns(random)
    }

    /// The exact means for a payload of `octets` octets.
    pub fn means(&self, outcome: Outcome, octets: usize) -> Means {
        let confirm = &self.hardware_confirm[usize::from(outcome == Outcome::Timeout)];
        Means {
            request_ns: self.request.mean_ns(),
            hardware_ns: self.hardware_request.moments().0 + self.prefix_ns(octets) + confirm.moments().0,
            confirm_ns: self.confirm[outcome as usize].mean_ns(),
        }
    }

    /// The components that miss their stated mean or standard deviation by more than 0.1 % and 1 ns.
    pub fn residuals(&self) -> &[Residual] {
        &self.residuals
    }

    /// How much longer than for the reference payload the adapter fetches before it starts, in ns.
    #[inline]
    fn prefix_ns(&self, octets: usize) -> f64 {
        let Some(dma) = self.dma else { return 0.0 };
        let octets = octets.min(dma.prefix_octets as usize) as f64;
        (octets - f64::from(dma.reference_octets.min(dma.prefix_octets))) / dma.octets_per_us * 1e3
    }
}
