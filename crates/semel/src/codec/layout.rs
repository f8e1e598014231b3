//! The flags and tags that reader and writer agree on.

/// Flags of a payload's optional parts.
pub(super) mod flag {
    pub(in super::super) const FINGERPRINT: u8 = 0b0001;
    pub(in super::super) const FIRST_EVENT: u8 = 0b0010;
    pub(in super::super) const LAST_SEEN_AT: u8 = 0b0100;
    pub(in super::super) const LAPSE_HOLD: u8 = 0b1000;
    pub(in super::super) const LABEL: u8 = 0b01_0000;
    pub(in super::super) const PAST_ATTEMPTS: u8 = 0b10_0000;
    pub(in super::super) const ALL_1: u8 = 0b00_1111;
    pub(in super::super) const ALL: u8 = 0b11_1111;
}

/// Flags of an outcome's optional parts.
pub(super) mod note {
    /// Format 1: up to two references without a kind.
    pub(in super::super) const PRIMARY_1: u8 = 0b0001;
    pub(in super::super) const SECONDARY_1: u8 = 0b0010;
    pub(in super::super) const DETAILS: u8 = 0b0100;
    pub(in super::super) const REFERENCES: u8 = 0b1000;
    pub(in super::super) const ALL_1: u8 = 0b0111;
    pub(in super::super) const ALL: u8 = 0b1100;
}

/// The kinds that the references of format 1 get.
pub(super) mod reference {
    pub(in super::super) const PRIMARY: &str = "primary";
    pub(in super::super) const SECONDARY: &str = "secondary";
}

/// Tags of the reasons why a record is held.
pub(super) mod hold {
    pub(in super::super) const LAPSED: u8 = 0;
    pub(in super::super) const ATTEMPTS: u8 = 1;
    pub(in super::super) const UNKNOWN: u8 = 2;
}

/// Tags of how an attempt ended.
pub(super) mod end {
    pub(in super::super) const COMPLETED: u8 = 0;
    pub(in super::super) const RELEASED: u8 = 1;
    pub(in super::super) const LAPSED: u8 = 2;
    pub(in super::super) const HELD: u8 = 3;
}

/// Tags of an outcome's kinds.
pub(super) mod kind {
    pub(in super::super) const SUCCESS: u8 = 0;
    pub(in super::super) const FAILURE: u8 = 1;
    pub(in super::super) const OTHER: u8 = 2;
}

/// Tags of the states.
pub(super) mod tag {
    pub(in super::super) const RUNNING: u8 = 1;
    pub(in super::super) const DONE: u8 = 2;
    pub(in super::super) const RELEASED: u8 = 3;
    pub(in super::super) const HELD: u8 = 4;
}
