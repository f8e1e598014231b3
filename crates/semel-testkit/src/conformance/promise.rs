//! The list of all promises, and the macro that makes a test of each.

use std::future::Future;
use std::pin::Pin;

use semel::store::Store;

use super::Broken;

/// What checking a promise gives.
pub type Checked<'a> = Pin<Box<dyn Future<Output = Result<(), Broken>> + Send + 'a>>;

/// A promise of every store, by name.
#[derive(Clone, Copy)]
pub struct Promise {
    /// The name of the function that checks it.
    pub name: &'static str,
    check: for<'a> fn(&'a dyn Store) -> Checked<'a>,
}

impl Promise {
    /// Checks whether the store keeps the promise. Needs a runtime with more than one thread.
    pub fn check<'a>(&self, store: &'a dyn Store) -> Checked<'a> {
        (self.check)(store)
    }
}

/// Every promise that a store makes.
pub fn promises() -> Vec<Promise> {
    crate::__promises!(list)
}

/// Makes one test of every promise, for the store that `open` opens: an `async fn() -> impl Store`.
///
/// The store may be shared by all tests, also by several runs at the same time: each uses keys of its own.
///
/// ```
/// use semel::store::MemoryStore;
///
/// async fn open() -> MemoryStore {
///     MemoryStore::new()
/// }
/// semel_testkit::conformance!(open);
/// ```
#[macro_export]
macro_rules! conformance {
    ($open:path) => {
        $crate::__promises!(tests $open);
    };
}

/// The one list, for `promises()` and `conformance!` alike: a promise that is in neither cannot be forgotten by one.
#[doc(hidden)]
#[macro_export]
macro_rules! __promises {
    (@list [] $($name:ident)*) => {
        vec![$(Promise { name: stringify!($name), check: |store| Box::pin(super::$name(store)) }),*]
    };
    (@tests [$open:path] $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $crate::__private::keeps(async {
                    let store = $open().await;
                    $crate::conformance::$name(&store).await
                });
            }
        )*
    };
    ($form:ident $($open:path)?) => {
        $crate::__promises! {
            @$form [$($open)?]
            a_swap_at_the_expected_version_replaces
            a_swap_of_an_absent_record_must_expect_none
            a_swap_of_a_present_record_must_expect_its_version
            a_stale_swap_changes_nothing
            stale_hands_back_the_record_that_won
            stale_against_nothing_hands_back_none
            versions_grow_with_every_write
            versions_grow_over_a_swept_life
            one_stale_swap_does_not_undo_another
            swaps_are_answered_in_their_order
            of_two_swaps_of_one_record_one_wins
            an_empty_batch_is_answered
            of_many_swaps_at_one_version_one_wins
            overlapping_batches_are_all_answered
            the_store_stamps_what_a_draft_leaves_open
            what_is_stamped_already_stays
            every_field_round_trips
            an_outcome_is_replayed_byte_for_byte
            a_key_comes_back_whole
            a_label_comes_back_in_every_state
            a_grant_comes_back_in_every_state
            an_open_grant_is_stamped_in_every_state
            past_attempts_come_back_in_every_state
            references_come_back_in_their_order
            words_of_the_callers_own_stay_its_own
            the_moment_of_a_probe_comes_back
            now_never_runs_backwards
            now_is_never_before_what_it_speaks_of
            load_answers_in_the_order_of_the_ids
            load_changes_nothing
            sweep_removes_what_is_past_its_keep
            sweep_spares_what_is_within_its_keep
            sweep_spares_what_is_kept_for_ever
            sweep_respects_its_limit
            more_left_is_honest
            a_longer_keep_outlives_the_shorter_before_it
            a_shorter_keep_ends_the_longer_before_it
            a_keep_ends_one_for_ever_before_it
            a_claim_past_the_keep_runs
            a_scan_shows_every_record_once_in_order
            a_page_goes_on_after_where_the_last_ended
            a_page_respects_its_limit
            an_empty_filter_hides_nothing
            a_scope_shows_its_tenant_only
            an_operation_or_a_name_shows_its_own_only
            states_show_their_own_only
            a_run_that_lapsed_under_hold_is_shown_as_held
            a_moment_shows_what_was_seen_before_it
            keys_that_are_split_otherwise_are_apart
            tenants_are_apart
            names_that_look_alike_are_apart
        }
    };
}
