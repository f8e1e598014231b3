//! Until the principal is there.
use semel_http::Principal;
pub(super) trait Pending: Sized {
    fn header(_: &str) -> Principal {
        Principal {}
    }
    fn shared() -> Principal {
        Principal {}
    }
    fn peer_address() -> Principal {
        Principal {}
    }
    fn peer_address_behind(_: Vec<ipnet::IpNet>) -> Principal {
        Principal {}
    }
    fn or(self, _: Principal) -> Principal {
        Principal {}
    }
}
impl Pending for Principal {}
