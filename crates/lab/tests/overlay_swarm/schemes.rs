//! What runs in the worlds.

/// A station that roams so, with these adapters more. The hub is one access point, and `far` the other.
macro_rules! roams {
    ($how:literal, $adapters:literal) => {
        concat!(
            r#"channel = 36
ap = "hub"
roam = { access_points = ["hub", "far"], hold = "100ms""#,
            $how,
            r#" }
protocol.sender = { rate = "6M", tries = 3 }
"#,
            $adapters,
            r#"[[group]]
name = "far"
channel = 149
placement.at = [60, 0]
protocol.beaconer = { interval = "51.2ms", rate = "6M", send = { rate = "6M" } }
"#
        )
    };
}

const ROAMS: &str = roams!("", "");
const ROAMS_WITH_RATES: &str = concat!("rate_control = \"minstrel\"\n", roams!("", ""));
const ROAMS_WITH_TWO: &str = roams!("", "[[group.adapter]]\nchannel = 149\n");
const ROAMS_WITH_COPIES: &str = roams!(", copies = true", "[[group.adapter]]\nchannel = 149\n");

const SLOTS: &str = r#"
[[schedule]]
name = "loop"
cycle = "4ms"
beacon = { from = "hub", rate = "6M", every = 12 }
release = { min = "8.9us", high = "28.4us" }
sync_error = "2us"
send = { rate = "24M", qos = true }
"#;

/// The beacons of a station nearby tell the time.
const REFERENCED: &str = r#"
[[schedule]]
name = "loop"
cycle = "4ms"
beacon = { from = "hub", reference = "neighbour", rate = "6M", every = 12 }
release = { min = "8.9us", high = "28.4us" }
sync_error = "2us"
send = { rate = "24M", qos = true }
[[group]]
name = "neighbour"
placement.at = [5, 5]
clock.drift_within_ppm = 20
protocol.beaconer = { interval = "102400us", rate = "6M", send = { rate = "24M" } }
"#;

/// Without ACKs, and deaf and heedless between its slots.
const SWITCHED_OFF: &str = r#"
[[schedule]]
name = "loop"
cycle = "4ms"
beacon = { from = "hub", rate = "6M", every = 12 }
release = { min = "8.9us", high = "28.4us" }
sync_error = "2us"
send = { rate = "24M", qos = true }
left_on = { reception = false, carrier_sense = false, virtual_carrier_sense = false, acks = false }
"#;

const JOINED: &str = r#"
[[schedule]]
name = "loop"
cycle = "4ms"
beacon = { from = "hub", rate = "6M", every = 4 }
release = { min = "8.9us", high = "28.4us" }
sync_error = "2us"
send = { rate = "24M", qos = true }
join = { lease = 12, silent = 40 }
watch = true
left_on = { reception = false, carrier_sense = false }
"#;

/// Name, what stands in front of the groups, the key of the hub and that of the leaves.
pub const SCHEMES: [(&str, &str, &str, &str); 25] = [
    (
        "edca",
        "",
        "protocol.sender = { rate = \"24M\" }",
        "protocol.sender = { rate = \"24M\" }",
    ),
    (
        "edf",
        "",
        "protocol.edf = { cost = \"200us\", deadline = \"4ms\", send = { rate = \"24M\" } }",
        "protocol.edf = { cost = \"200us\", deadline = \"4ms\", send = { rate = \"24M\" } }",
    ),
    (
        "polled",
        "",
        "protocol.coordinator = { attempt = \"220us\", answer = \"250us\", deadline = \"4ms\", send = { rate = \"24M\", tries = 1 } }",
        "protocol.responder = { coordinator = \"hub\", within = \"150us\", send = { rate = \"24M\", tries = 1 } }",
    ),
    (
        "tdma",
        SLOTS,
        "protocol.tdma.schedule = \"loop\"",
        "protocol.tdma.schedule = \"loop\"",
    ),
    (
        "joined",
        JOINED,
        "protocol.tdma.schedule = \"loop\"",
        "protocol.tdma = { schedule = \"loop\", stay = { leave_after = \"700ms\", deadline = \"8ms\" } }",
    ),
    (
        "by reference",
        REFERENCED,
        "protocol.tdma.schedule = \"loop\"",
        "protocol.tdma.schedule = \"loop\"",
    ),
    (
        "switched off",
        SWITCHED_OFF,
        "protocol.tdma = { schedule = \"loop\", edf = { cost = \"100us\", deadline = \"4ms\" } }",
        "protocol.tdma = { schedule = \"loop\", edf = { cost = \"100us\", deadline = \"4ms\" } }",
    ),
    (
        "redundancy+joined",
        JOINED,
        "redundancy = { copies = \"reactive\" }\nprotocol.tdma.schedule = \"loop\"",
        "redundancy = { copies = \"reactive\" }\nprotocol.tdma = { schedule = \"loop\", stay = { leave_after = \"700ms\", deadline = \"8ms\" } }",
    ),
    (
        "redundancy+tbmac",
        "",
        "redundancy = {}\nprotocol.tbmac = { payload_octets = 80, release = { high = \"80us\" }, send = { rate = \"24M\" } }",
        "redundancy = {}\nprotocol.tbmac = { payload_octets = 80, release = { high = \"80us\" }, send = { rate = \"24M\" } }",
    ),
    (
        "pooled",
        "",
        "protocol.edf = { pool = { share = 0.1, depth = \"340us\" }, cost = \"170us\", deadline = \"4ms\", no_backoff_aifsn = 2, send = { rate = \"24M\", tries = 255 } }",
        "protocol.edf = { cost = \"200us\", deadline = \"4ms\", send = { rate = \"24M\" } }",
    ),
    (
        "redundancy+tdma+edf",
        SLOTS,
        "redundancy = {}\nprotocol.tdma = { schedule = \"loop\", edf = { cost = \"100us\", deadline = \"4ms\" } }",
        "redundancy = {}\nprotocol.tdma = { schedule = \"loop\", edf = { cost = \"100us\", deadline = \"4ms\" } }",
    ),
    (
        "tbmac",
        "",
        "protocol.tbmac = { payload_octets = 80, release = { high = \"80us\" }, send = { rate = \"24M\" } }",
        "protocol.tbmac = { payload_octets = 80, release = { high = \"80us\" }, send = { rate = \"24M\" } }",
    ),
    (
        "slotted",
        "",
        "protocol.slotted = { slot = \"500us\", left_on.reception = true, send = { rate = \"24M\", ack = false, tries = 1 } }",
        "protocol.sender = { rate = \"24M\" }",
    ),
    (
        "ibss",
        "",
        "protocol.ibss = { window_tu = 10, soft_beacon = \"5ms\", adapt_wake_ahead = true, multi_hop = true, send = { rate = \"24M\" } }",
        "protocol.ibss = { window_tu = 10, soft_beacon = \"5ms\", adapt_wake_ahead = true, multi_hop = true, send = { rate = \"24M\" } }",
    ),
    (
        "minstrel",
        "",
        "rate_control = \"minstrel\"\nprotocol.sender = { rate = \"24M\" }",
        "rate_control = \"minstrel\"\nprotocol.sender = { rate = \"24M\" }",
    ),
    (
        "rsin",
        "",
        "rate_control.rsin = {}\nprotocol.sender = { rate = \"24M\" }",
        "rate_control.rsin = {}\nprotocol.sender = { rate = \"24M\" }",
    ),
    (
        "redundancy+rates",
        "",
        "redundancy = { copies.proactive = \"500us\" }\nrate_control = \"minstrel\"\nprotocol.sender = { rate = \"24M\" }",
        "redundancy = { copies = \"reactive\" }\nrate_control.rsin = {}\nprotocol.sender = { rate = \"24M\" }",
    ),
    (
        "tbmac over borders",
        "",
        "phy = \"b\"\nchannel = 1\nprotocol.tbmac = { payload_octets = 50, release = { high = \"80us\" }, send = { rate = \"2M\" }, cells = { radius_m = 20, channels = [1, 6, 11], retune = \"200us\" } }",
        "phy = \"b\"\nchannel = 1\nprotocol.tbmac = { payload_octets = 50, release = { high = \"80us\" }, send = { rate = \"2M\" }, cells = { radius_m = 20, channels = [1, 6, 11], retune = \"200us\" } }",
    ),
    (
        "roam",
        "",
        "channel = 36\nprotocol.beaconer = { interval = \"51.2ms\", rate = \"6M\", send = { rate = \"6M\" } }",
        ROAMS,
    ),
    (
        "roam with two adapters",
        "",
        "channel = 36\nprotocol.beaconer = { interval = \"51.2ms\", rate = \"6M\", send = { rate = \"6M\" } }",
        ROAMS_WITH_TWO,
    ),
    (
        "roam with copies",
        "",
        "channel = 36\nprotocol.beaconer = { interval = \"51.2ms\", rate = \"6M\", send = { rate = \"6M\" } }",
        ROAMS_WITH_COPIES,
    ),
    (
        "roam with rates",
        "",
        "channel = 36\nprotocol.beaconer = { interval = \"51.2ms\", rate = \"6M\", send = { rate = \"6M\" } }",
        ROAMS_WITH_RATES,
    ),
    (
        "redundancy+polled",
        "",
        "redundancy = { copies = \"reactive\" }\nprotocol.coordinator = { attempt = \"220us\", answer = \"250us\", deadline = \"4ms\", send = { rate = \"24M\", tries = 1 } }",
        "redundancy = { copies = \"reactive\" }\nprotocol.responder = { coordinator = \"hub\", within = \"150us\", send = { rate = \"24M\", tries = 1 } }",
    ),
    (
        "redundancy+edf",
        "",
        "redundancy = { copies.proactive = \"500us\" }\nprotocol.edf = { cost = \"200us\", deadline = \"4ms\", send = { rate = \"24M\" } }",
        "redundancy = {}\nprotocol.edf = { cost = \"200us\", deadline = \"4ms\", send = { rate = \"24M\" } }",
    ),
    (
        "rates with MCS",
        "",
        "phy = \"n5\"\nrate_control = \"minstrel\"\nprotocol.sender = { rate = \"mcs7/20\" }",
        "phy = \"n5\"\nrate_control.rsin = {}\nprotocol.sender = { rate = \"mcs7/20\" }",
    ),
];

/// Those whose slots may not meet.
pub const SCHEDULED: [&str; 6] = [
    "tdma",
    "joined",
    "by reference",
    "switched off",
    "redundancy+joined",
    "redundancy+tdma+edf",
];
