//! What is in `postgresql.conf`.

use std::collections::BTreeMap;

use crate::place::Place;

/// Every setting that is not PostgreSQL's own default, or must not be another.
#[derive(Clone, Debug)]
pub(crate) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Nothing that was acknowledged may be lost.
    pub(crate) fn durable(place: &Place) -> Self {
        let mut settings = Self(BTreeMap::new());
        settings.live_in(place);
        for (name, value) in [
            ("listen_addresses", "127.0.0.1"),
            ("max_connections", "200"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            // Its files are in the folder, where they can be removed with it.
            ("dynamic_shared_memory_type", "mmap"),
            // A standby that is a little late still finds what it needs.
            ("wal_keep_size", "256MB"),
            ("hot_standby", "on"),
            // A standby is tried again at once.
            ("wal_retrieve_retry_interval", "100ms"),
            ("log_checkpoints", "off"),
        ] {
            settings.set(name, value);
        }
        settings
    }

    /// Takes the port and the folder of another place.
    pub(crate) fn live_in(&mut self, place: &Place) {
        self.set("port", &place.port.to_string());
        self.set("unix_socket_directories", &place.folder.to_string_lossy());
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(crate) fn to_text(&self) -> String {
        let line = |(name, value): (&String, &String)| format!("{name} = '{}'\n", value.replace('\'', "''"));
        self.0.iter().map(line).collect::<Vec<_>>().concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_value_is_doubled() {
        let mut settings = Settings(BTreeMap::new());
        settings.set("a", "b'c");
        settings.set("d", "e");
        settings.unset("d");
        assert_eq!(settings.to_text(), "a = 'b''c'\n");
    }
}
