//! What a build says that was made without a feature.

use semel::{Error, ErrorKind};

/// This build cannot do `what`; one with `feature` can.
pub fn missing_feature(what: &str, feature: &str) -> Error {
    Error::new(ErrorKind::Invalid, missing_feature_message(what, feature))
}

/// The same as text.
pub fn missing_feature_message(what: &str, feature: &str) -> String {
    format!("this build has no {what}; build with `--features {feature}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_feature_names_it() {
        let error = missing_feature("Kafka", "kafka");
        assert_eq!(error.to_string(), "this build has no Kafka; build with `--features kafka`");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
