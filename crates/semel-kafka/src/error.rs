//! What a failure of librdkafka means.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use semel::{Error, ErrorKind};

/// An error of librdkafka as ours. It connects again by itself, for as long as it takes.
pub(crate) fn failure(error: KafkaError) -> Error {
    let (kind, message) = match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => (
            ErrorKind::Invalid,
            "the partition has no record where the pipeline's offset points: records were removed before they were \
             read, or the topic was made anew; rewind the offset to go on",
        ),
        _ if matches!(error, KafkaError::MessageConsumptionFatal(_)) => {
            (ErrorKind::Invalid, "librdkafka cannot go on; mend what it names, then start again")
        }
        _ => (ErrorKind::Unavailable, "Kafka does not answer as it should; ask again later"),
    };
    Error::new(kind, format!("{message} ({error})")).caused_by(error)
}
