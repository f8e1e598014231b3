//! The flags and tags that reader and writer agree on.

/// Flags of a payload's optional parts.
pub(super) mod flag {
    pub(in super::super) const FINGERPRINT: u8 = 1;
    pub(in super::super) const FIRST_EVENT: u8 = 2;
    pub(in super::super) const LAST_SEEN_AT: u8 = 4;
    pub(in super::super) const LAPSE_HOLD: u8 = 8;
    pub(in super::super) const ALL: u8 = FINGERPRINT | FIRST_EVENT | LAST_SEEN_AT | LAPSE_HOLD;
}

/// Flags of an outcome's optional parts.
pub(super) mod note {
    pub(in super::super) const PRIMARY: u8 = 1;
    pub(in super::super) const SECONDARY: u8 = 2;
    pub(in super::super) const DETAILS: u8 = 4;
    pub(in super::super) const ALL: u8 = PRIMARY | SECONDARY | DETAILS;
}

/// Tags of the states.
pub(super) mod tag {
    pub(in super::super) const RUNNING: u8 = 1;
    pub(in super::super) const DONE: u8 = 2;
    pub(in super::super) const RELEASED: u8 = 3;
    pub(in super::super) const HELD: u8 = 4;
}
