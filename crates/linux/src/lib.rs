//! The Linux side: measuring this computer, and (later) the 802.11 stack as a radio.
