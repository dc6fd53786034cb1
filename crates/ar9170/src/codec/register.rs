//! Registers and addresses that the driver and the emulated stick name, and the bits in them.

/// First octet of the EEPROM in the address space.
pub const EEPROM: u32 = 0x1600;
/// TSF, low word; the high word follows.
pub const TSF: u32 = 0x1c_3514;
/// ATIM window in TU, low 16 bits.
pub const ATIM_WINDOW: u32 = 0x1c_351c;
/// Beacon interval in TU (16 bits), DTIM period (8 bits), and what the station is.
pub const BEACON_PERIOD: u32 = 0x1c_3520;
/// In [`BEACON_PERIOD`]: a station of an IBSS.
pub const BEACON_PERIOD_IBSS: u32 = 1 << 25;
/// TU after the last TBTT at which the event before the next one comes, in both halves.
pub const PRE_TBTT: u32 = 0x1c_3524;
/// Own address: four octets, and two in the next word.
pub const MAC_ADDRESS: u32 = 0x1c_3610;
/// BSSID, in the same way.
pub const BSSID: u32 = 0x1c_3618;
/// Hash of group addresses: 64 bits, by the upper six bits of the last octet.
pub const GROUP_HASH: u32 = 0x1c_3624;
/// Basic rates: bits 0 to 3 CCK, from bit 8 on OFDM.
pub const BASIC_RATES: u32 = 0x1c_3630;
/// Mandatory rates.
pub const MANDATORY_RATES: u32 = 0x1c_3634;
/// Sniffer: everything that is heard is handed up.
pub const SNIFFER: u32 = 0x1c_3674;
/// What [`SNIFFER`] holds when it is on.
pub const SNIFFER_ON: u32 = 0x0200_0001;
/// What it holds when it is off.
pub const SNIFFER_OFF: u32 = 0x0200_0000;
/// Encryption mode.
pub const ENCRYPTION: u32 = 0x1c_3678;
/// Types of frames that pass: bits 0 to 15 management subtypes, then control frames.
pub const FRAME_TYPES: u32 = 0x1c_368c;
/// What [`FRAME_TYPES`] holds by default: management, BlockAckReq and PS-Poll.
pub const FRAME_TYPES_DEFAULT: u32 = 0x0500_ffff;
/// In [`FRAME_TYPES`]: beacons and ATIMs.
pub const FRAME_TYPES_BEACON_ATIM: u32 = 1 << 8 | 1 << 9;
/// Slot time in us, 10 bits up.
pub const SLOT_TIME: u32 = 0x1c_36f0;
/// Who the station is to the key memory.
pub const CAM_MODE: u32 = 0x1c_3700;
/// [`CAM_MODE`] of a station of an IBSS.
pub const CAM_MODE_IBSS: u32 = 0x0f00_00e0;
/// Contention windows of queue 0; those of queues 1 to 4 follow, `CWmax << 16 | CWmin`.
pub const CONTENTION: u32 = 0x1c_3b00;
/// AIFS in us, twelve bits each: queues 0 and 1, and the low eight bits of queue 2.
pub const AIFS_LOW: u32 = 0x1c_3b14;
/// The rest of queue 2, and queues 3 and 4.
pub const AIFS_HIGH: u32 = 0x1c_3b18;
/// TXOP limits in 32 us of queues 0 and 1; those of 2 and 3 are at [`TXOP_HIGH`].
pub const TXOP_LOW: u32 = 0x1c_3b44;
/// TXOP limits of queues 2 and 3.
pub const TXOP_HIGH: u32 = 0x1c_3b48;
/// Receiver.
pub const RX_CONTROL: u32 = 0x1c_3c40;
/// DMA: bit 8 starts reception, 0 stops all.
pub const DMA_TRIGGER: u32 = 0x1c_3d30;
/// In [`DMA_TRIGGER`]: receive.
pub const DMA_RECEIVE: u32 = 0x100;
/// PLCP header of the beacon.
pub const BEACON_PLCP: u32 = 0x1c_3d90;
/// Noise floor, signed, bits 27 to 19.
pub const NOISE_FLOOR: u32 = 0x1c_5864;
/// Reset of the baseband before a change of channel.
pub const PHY_RESET: u32 = 0x1d_4004;
/// What [`PHY_RESET`] takes first; then 0.
pub const PHY_RESET_ON: u32 = 0x800;
/// SRAM, where the beacon is.
pub const SRAM: core::ops::Range<u32> = 0x10_0000..0x11_8000;
/// Program memory, where the firmware goes.
pub const PROGRAM: core::ops::Range<u32> = 0x20_0000..0x20_8000;

/// Bits of the receive filter: a frame of which one is set is dropped.
pub mod filter {
    /// With a wrong FCS or PLCP header, too short or too long.
    pub const BAD: u32 = 0x01;
    /// For another receiver.
    pub const OTHER_RECEIVER: u32 = 0x02;
    /// That cannot be decrypted.
    pub const DECRYPT: u32 = 0x04;
    /// Control frames but BlockAckReq and PS-Poll.
    pub const CONTROL: u32 = 0x08;
    /// PS-Poll.
    pub const PS_POLL: u32 = 0x10;
    /// BlockAckReq.
    pub const BLOCK_ACK_REQUEST: u32 = 0x20;
    /// Management frames.
    pub const MANAGEMENT: u32 = 0x40;
    /// Data frames.
    pub const DATA: u32 = 0x80;
    /// What Linux begins with: bad frames, other receivers, control frames.
    pub const DEFAULT: u32 = BAD | OTHER_RECEIVER | CONTROL;
}

/// The two words of an address, as [`MAC_ADDRESS`] and [`BSSID`] take it.
pub const fn address_words(address: [u8; 6]) -> [u32; 2] {
    let [a, b, c, d, e, f] = address;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, 0, 0])]
}

/// The address in two words.
pub const fn address([low, high]: [u32; 2]) -> [u8; 6] {
    let [a, b, c, d] = low.to_le_bytes();
    let [e, f, _, _] = high.to_le_bytes();
    [a, b, c, d, e, f]
}

/// The noise floor in dBm that a [`NOISE_FLOOR`] word tells: nine bits, signed.
pub const fn noise_floor_dbm(word: u32) -> i16 {
    let bits = (word >> 19 & 0x1ff) as i16;
    if bits & 0x100 != 0 { bits - 0x200 } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_there_and_back() {
        let a = [2, 1, 0xfe, 3, 4, 0xff];
        assert_eq!(address_words(a), [0x03fe_0102, 0xff04]);
        assert_eq!(address(address_words(a)), a);
    }

    #[test]
    fn noise_floor_is_signed() {
        assert_eq!(noise_floor_dbm(((-95_i32 as u32) & 0x1ff) << 19), -95);
        assert_eq!(noise_floor_dbm(0), 0);
    }
}
