//! What the API keeps between requests, all of it bounded: above all the permits that this server granted and that nobody has
//! settled yet, as far as memory is given for them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use semel::Permit;
use semel::record::{PermitId, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many may listen to live events at once.
const LISTENERS_MAX: usize = 256;
/// How many permits are kept at most.
const PERMITS_MAX: usize = 65_536;
/// How many locks they are spread over.
const SHARDS: usize = 16;
/// A permit remembers its record as it last wrote it. With more in its steps than this, it is not kept.
const STEP_BYTES_MAX: usize = 16 << 10;

/// What the API keeps between requests. None of it has to survive: another server goes on without it.
#[derive(Debug)]
pub struct ApiState {
    pub(super) granted: PermitCache,
    listeners: Arc<Semaphore>,
}

impl Default for ApiState {
    fn default() -> Self {
        Self { granted: PermitCache::default(), listeners: Arc::new(Semaphore::new(LISTENERS_MAX)) }
    }
}

impl ApiState {
    /// A place among those who listen; `None` if too many do.
    pub(super) fn listen(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.listeners).try_acquire_owned().ok()
    }
}

/// Live permits, by what proves them. A permit that is not here is rebuilt from its text, and costs a look at the store;
/// one that is here is settled by one swap. So nothing is lost when the oldest are dropped at the bound.
#[derive(Debug)]
pub(super) struct PermitCache {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
}

type Proof = (PermitId, Version);

/// Two generations. When the young ones are many, they become the old ones, and what was old is dropped.
#[derive(Debug, Default)]
struct Shard {
    young: HashMap<Proof, Permit>,
    old: HashMap<Proof, Permit>,
}

impl Default for PermitCache {
    fn default() -> Self {
        Self { shards: Default::default(), hasher: RandomState::new() }
    }
}

impl PermitCache {
    /// Remembers a permit for whoever settles it here.
    pub(super) fn keep(&self, permit: Permit) {
        let step_bytes = permit.steps().iter().map(|step| step.value.len()).fold(0, usize::saturating_add);
        let proof = (permit.id(), Version::new(permit.fence()));
        let mut shard = self.shard(&proof);
        if step_bytes > STEP_BYTES_MAX {
            shard.remove(&proof);
            return;
        }
        if shard.young.len() >= PERMITS_MAX / SHARDS / 2 {
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.insert(proof, permit);
    }

    /// The permit, if it is still here.
    pub(super) fn get(&self, permit_id: PermitId, fence: Version) -> Option<Permit> {
        let proof = (permit_id, fence);
        let shard = self.shard(&proof);
        shard.young.get(&proof).or_else(|| shard.old.get(&proof)).cloned()
    }

    /// The run is over.
    pub(super) fn forget(&self, permit: &Permit) {
        let proof = (permit.id(), Version::new(permit.fence()));
        self.shard(&proof).remove(&proof);
    }

    fn shard(&self, proof: &Proof) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(self.hasher.hash_one(proof)).unwrap_or(0) % SHARDS;
        #[expect(clippy::indexing_slicing, reason = "a remainder of the length is within it")]
        let shard = &self.shards[at];
        // Nothing is half done in a map that a panic left: each change is one call.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn remove(&mut self, proof: &Proof) {
        self.young.remove(proof);
        self.old.remove(proof);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use semel::store::MemoryStore;
    use semel::{Key, PermitParts, Semel};

    use super::*;

    fn permit(semel: &Semel, number: u128) -> Permit {
        semel.permit(PermitParts {
            key: Key::new("charge", "order").unwrap(),
            permit_id: PermitId::new(number),
            attempt: 1,
            fence: Version::new(7),
            lease: Duration::from_mins(1),
        })
    }

    #[test]
    fn a_permit_is_found_by_its_id_and_fence_until_it_is_forgotten() {
        let (semel, granted) = (Semel::new(MemoryStore::new()), PermitCache::default());
        let kept = permit(&semel, 1);
        granted.keep(kept.clone());
        assert!(granted.get(PermitId::new(1), Version::new(7)).is_some());
        assert!(granted.get(PermitId::new(1), Version::new(8)).is_none(), "another grant under the same id");
        assert!(granted.get(PermitId::new(2), Version::new(7)).is_none());
        granted.forget(&kept);
        assert!(granted.get(PermitId::new(1), Version::new(7)).is_none());
    }

    #[test]
    fn the_oldest_are_dropped_at_the_bound_and_the_newest_stay() {
        let (semel, granted) = (Semel::new(MemoryStore::new()), PermitCache::default());
        for number in 0..100_000 {
            granted.keep(permit(&semel, number));
        }
        let kept: usize = granted
            .shards
            .iter()
            .map(|shard| shard.lock().map(|shard| shard.young.len() + shard.old.len()).unwrap())
            .sum();
        assert!(kept <= PERMITS_MAX, "{kept}");
        assert!(granted.get(PermitId::new(99_999), Version::new(7)).is_some());
        assert!(granted.get(PermitId::new(0), Version::new(7)).is_none());
    }
}
