//! Who a caller is.

/// Who a caller is: where that is to be found in a request.
#[derive(Clone, Debug)]
pub struct Principal {}
