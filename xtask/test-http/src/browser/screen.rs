//! How large a screen is, and whether it is dark.

/// What somebody looks at a page on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// For file names.
    pub name: &'static str,
    /// In CSS pixels.
    pub width: u32,
    /// In CSS pixels.
    pub height: u32,
    /// Whether the person prefers dark pages.
    pub is_dark: bool,
}

impl Screen {
    /// A desktop.
    pub const DESKTOP: Self = Self { name: "desktop-light", width: 1_280, height: 900, is_dark: false };
    /// A phone.
    pub const PHONE: Self = Self { name: "phone-light", width: 390, height: 844, is_dark: false };
    /// All that pictures are made on.
    pub const ALL: [Self; 4] = [
        Self::DESKTOP,
        Self { name: "desktop-dark", is_dark: true, ..Self::DESKTOP },
        Self::PHONE,
        Self { name: "phone-dark", is_dark: true, ..Self::PHONE },
    ];

    /// Whether it is a phone's.
    pub(super) fn is_mobile(self) -> bool {
        self.width < 600
    }

    /// The word of CSS for how it is coloured.
    pub(super) fn scheme(self) -> &'static str {
        if self.is_dark { "dark" } else { "light" }
    }
}
