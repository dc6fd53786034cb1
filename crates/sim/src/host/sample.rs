//! What goes into a draw and what comes out.

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
    pub(super) software: f64,
    pub(super) hardware: f64,
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

/// A part of the way whose whole distribution the model has as a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// t1 to t2.
    RequestApi,
    /// t2 to t3.
    RequestDriverIndependent,
    /// t3 to t4.
    RequestDriverDependent,
    /// t1 to t4; only where the profile has it as a total.
    Request,
    /// The adapter, both ways.
    Hardware,
    /// t5 to t6.
    Isr,
    /// t6 to t7.
    ConfirmDriverDependent,
    /// t7 to t8.
    ConfirmDriverIndependent,
    /// t8 to t9.
    ConfirmApi,
    /// t5 to t9; only where the profile has it as a total.
    Confirm,
}

/// How the software parts of one transmission depend on each other. Each path has a standard normal number, its load
/// X; a part of it sees `c X + sqrt(1 - c^2) Y`, where Y is its own, and c is 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependencies {
    /// The c of the request path.
    pub request: f64,
    /// The c of the confirm path.
    pub confirm: f64,
    /// Correlation of the two loads, 0 to 1.
    pub paths: f64,
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
