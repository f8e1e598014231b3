//! The flags and tags that reader and writer agree on.

/// Flags of a payload's optional parts.
pub(super) mod flag {
    pub(in super::super) const FINGERPRINT: u8 = 0b0001;
    pub(in super::super) const FIRST_EVENT: u8 = 0b0010;
    pub(in super::super) const LAST_SEEN_AT: u8 = 0b0100;
    pub(in super::super) const LAPSE_HOLD: u8 = 0b1000;
    pub(in super::super) const ALL: u8 = 0b1111;
}

/// Flags of an outcome's optional parts.
pub(super) mod note {
    pub(in super::super) const PRIMARY: u8 = 0b001;
    pub(in super::super) const SECONDARY: u8 = 0b010;
    pub(in super::super) const DETAILS: u8 = 0b100;
    pub(in super::super) const ALL: u8 = 0b111;
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
