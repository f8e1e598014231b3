//! What every broker whose streams many readers share must keep.

use std::collections::BTreeSet;
use std::time::Duration;

use semel_stream::source::{Delivery, Fetched, Source, Tag};
use tokio::time::{Instant, timeout};

/// Longer than anything takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// A broker that has something to say would have said it by then.
const MOMENT: Duration = Duration::from_millis(700);

/// Where an event says what makes it the same as another, beside the broker's own id.
pub const KEY_HEADER: &str = "Event-Key";

/// A queue, or a stream, of a test's own.
#[expect(async_fn_in_trait, reason = "only tests call it, and they name the broker that they have")]
pub trait Broker {
    /// Publishes events of these ids; returns when the broker promised to keep them.
    async fn publish_all(&self, ids: &[String]);

    /// Publishes events with the same keys, and whatever else makes the broker take them for others.
    async fn publish_twins(&self, ids: &[String]);

    /// How many events are not acknowledged, if the broker can be reached. Those that a reader holds may be left out.
    async fn left(&self) -> Option<u64>;

    /// A reader that gets there by this port. What it does not acknowledge is delivered again after some seconds.
    fn reader(&self, port: u16) -> Box<dyn Source>;

    /// The broker's port.
    fn port(&self) -> u16;

    /// Publishes one event.
    async fn publish(&self, id: &str) {
        self.publish_all(&[id.to_owned()]).await;
    }

    /// Publishes so many events; their ids are the answer.
    async fn publish_many(&self, count: usize) -> BTreeSet<String> {
        let ids: Vec<_> = (0..count).map(|number| format!("e{number}")).collect();
        self.publish_all(&ids).await;
        ids.into_iter().collect()
    }
}

/// The id of an event.
pub fn id(delivery: &Delivery) -> String {
    delivery.event.id.as_deref().unwrap().to_owned()
}

/// The ids of events.
pub fn ids(deliveries: &[Delivery]) -> BTreeSet<String> {
    deliveries.iter().map(id).collect()
}

/// The tags of deliveries.
pub fn tags(deliveries: &[Delivery]) -> Vec<Tag> {
    deliveries.iter().map(|delivery| delivery.tag).collect()
}

/// So many deliveries, and no error among them.
pub async fn take(source: &mut dyn Source, count: usize) -> Vec<Delivery> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let fetched = timeout(PATIENCE, source.fetch(count - taken.len())).await;
        let Fetched::Deliveries(deliveries) = fetched.expect("nothing comes").unwrap() else {
            panic!("no deliveries")
        };
        taken.extend(deliveries);
    }
    taken
}

/// What comes within a moment.
pub async fn momentary(source: &mut dyn Source) -> Vec<Delivery> {
    let mut taken = Vec::new();
    while let Ok(Ok(Fetched::Deliveries(deliveries))) = timeout(MOMENT, source.fetch(64)).await {
        taken.extend(deliveries);
    }
    taken
}

/// The next deliveries, however often the broker cannot be reached.
pub async fn insist(source: &mut dyn Source, most: usize) -> Vec<Delivery> {
    let until = Instant::now() + PATIENCE;
    loop {
        match timeout(PATIENCE, source.fetch(most)).await.expect("nothing comes") {
            Ok(Fetched::Deliveries(deliveries)) => return deliveries,
            Ok(other) => panic!("{other:?}"),
            Err(error) if Instant::now() > until => panic!("the broker is not back: {error:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// What was not acknowledged when a connection broke is delivered again, and nothing else is.
pub async fn what_was_not_acknowledged_comes_again(broker: &impl Broker, way: &crate::way::Way) {
    broker.publish_many(4).await;
    let mut source = broker.reader(way.port());
    let first = take(&mut *source, 4).await;
    source.acknowledge(&[first[1].tag, first[2].tag]).await.unwrap();
    let unsettled: BTreeSet<_> = [id(&first[0]), id(&first[3])].into();
    // An answer says that the broker has heard what was said before the question.
    source.lag().await.unwrap();
    way.cut().await;
    until(async || broker.left().await == Some(2)).await;
    assert!(
        timeout(PATIENCE, source.fetch(4)).await.unwrap().is_err(),
        "a line that was cut brought something"
    );
    let again = take(&mut *source, 2).await;
    assert_eq!(ids(&again), unsettled);
    assert!(
        again.iter().all(|delivery| delivery.event.deliveries >= Some(2)),
        "not known to be delivered again"
    );
    source.acknowledge(&tags(&again)).await.unwrap();
    source.lag().await.unwrap();
    way.cut().await;
    drop(source);
    // Control: without those acknowledgements, two would be left, as before.
    until(async || broker.left().await == Some(0)).await;
}

/// A tag of a connection that is gone acknowledges nothing and gives nothing back.
pub async fn tags_of_a_dead_line_count_for_nothing(broker: &impl Broker, way: &crate::way::Way) {
    broker.publish_many(3).await;
    let mut source = broker.reader(way.port());
    let dead = take(&mut *source, 3).await;
    way.cut().await;
    // Before anybody noticed, and after.
    let _ = source.acknowledge(&tags(&dead[..1])).await;
    while source.fetch(3).await.is_err() {}
    source.acknowledge(&tags(&dead)).await.unwrap();
    source.give_back(&tags(&dead), Duration::ZERO).await.unwrap();
    drop(source);
    let mut other = broker.reader(broker.port());
    // If a tag of a dead line acknowledged something, it never comes.
    let mut again = take(&mut *other, 3).await;
    while ids(&again).len() < 3 {
        again.extend(take(&mut *other, 1).await);
    }
    other.acknowledge(&tags(&again)).await.unwrap();
    // Once more: a tag that is settled is passed over, and does no harm.
    other.acknowledge(&tags(&again)).await.unwrap();
    other.give_back(&tags(&again), Duration::ZERO).await.unwrap();
    broker.publish("one-more").await;
    assert_eq!(id(&take(&mut *other, 1).await[0]), "one-more");
}

/// What is given back comes again after its delay, and holds up nothing else.
pub async fn what_is_given_back_comes_after_its_delay(broker: &impl Broker) {
    const DELAY: Duration = Duration::from_secs(1);
    broker.publish("late").await;
    let mut source = broker.reader(broker.port());
    let late = take(&mut *source, 1).await;
    let given_back_at = Instant::now();
    source.give_back(&tags(&late), DELAY).await.unwrap();
    broker.publish("meanwhile").await;
    let meanwhile = take(&mut *source, 1).await;
    assert_eq!(id(&meanwhile[0]), "meanwhile", "it waits for the one that was given back");
    source.acknowledge(&tags(&meanwhile)).await.unwrap();
    let again = take(&mut *source, 1).await;
    assert_eq!(id(&again[0]), "late");
    assert_eq!(again[0].event.deliveries, Some(2));
    assert!(given_back_at.elapsed() >= DELAY, "too early: after {:?}", given_back_at.elapsed());
    // Control: without a delay it comes at once, and not when an acknowledgement is overdue.
    let given_back_at = Instant::now();
    source.give_back(&tags(&again), Duration::ZERO).await.unwrap();
    let again = take(&mut *source, 1).await;
    assert!(given_back_at.elapsed() < DELAY, "too late: after {:?}", given_back_at.elapsed());
    source.acknowledge(&tags(&again)).await.unwrap();
    assert!(momentary(&mut *source).await.is_empty());
}

/// A fetch may be dropped at any moment.
pub async fn a_fetch_that_is_dropped_loses_nothing(broker: &impl Broker) {
    let published = broker.publish_many(200).await;
    let mut source = broker.reader(broker.port());
    let mut taken = Vec::new();
    let until = Instant::now() + PATIENCE;
    while taken.len() < published.len() {
        assert!(Instant::now() < until, "{} of {} came", taken.len(), published.len());
        let wait = Duration::from_micros(rand::random_range(0..3_000));
        if let Ok(fetched) = timeout(wait, source.fetch(7)).await {
            let Fetched::Deliveries(deliveries) = fetched.unwrap() else { panic!("no deliveries") };
            assert!(deliveries.len() <= 7);
            source.acknowledge(&tags(&deliveries)).await.unwrap();
            taken.extend(deliveries);
        }
    }
    assert_eq!(ids(&taken), published);
    assert!(
        taken.iter().all(|delivery| delivery.event.deliveries == Some(1)),
        "some had to be delivered again"
    );
}

/// Reads while `crash` is called after a third, and goes on without help until everything has come.
pub async fn a_crash_loses_nothing_that_was_not_acknowledged<B: Broker>(
    broker: &mut B,
    crash: impl FnOnce(&mut B),
) {
    let published = broker.publish_many(90).await;
    let mut source = broker.reader(broker.port());
    let mut done = BTreeSet::new();
    while done.len() < 30 {
        let deliveries = take(&mut *source, 10).await;
        source.acknowledge(&tags(&deliveries)).await.unwrap();
        done.extend(ids(&deliveries));
    }
    let in_work = take(&mut *source, 10).await;
    crash(broker);
    // Too late: whether it is an error or passed over, it counts for nothing.
    let _ = source.acknowledge(&tags(&in_work)).await;
    while done.len() < published.len() {
        let deliveries = insist(&mut *source, 10).await;
        if source.acknowledge(&tags(&deliveries)).await.is_ok() {
            done.extend(ids(&deliveries));
        }
    }
    assert_eq!(done, published);
    assert!(ids(&in_work).is_subset(&done));
    until(async || source.lag().await.unwrap() == Some(0)).await;
}

/// Asks until it is so.
pub async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < until, "it never is");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
