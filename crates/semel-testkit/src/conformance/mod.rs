//! What every store promises: one named function a promise, and [`conformance!`](crate::conformance!) for all.
//!
//! A store's whole test file opens the store and names the suite. Nothing is mocked and no clock is moved: where
//! time must pass, a record gets a short keep and the store's own now is polled until it is over.

mod concurrent;
mod fields;
mod keep;
mod promise;
mod record;
mod scan;
mod stamp;
mod swap;
mod sweep;
mod trial;

pub use concurrent::{of_many_swaps_at_one_version_one_wins, overlapping_batches_are_all_answered};
pub use fields::{
    a_grant_comes_back_in_every_state, a_label_comes_back_in_every_state,
    an_open_grant_is_stamped_in_every_state, past_attempts_come_back_in_every_state,
    references_come_back_in_their_order, the_moment_of_a_probe_comes_back,
    words_of_the_callers_own_stay_its_own,
};
pub use keep::{
    a_claim_past_the_keep_runs, a_keep_ends_one_for_ever_before_it,
    a_longer_keep_outlives_the_shorter_before_it, a_shorter_keep_ends_the_longer_before_it,
};
pub use promise::{Checked, Promise, promises};
pub use record::{
    a_key_comes_back_whole, an_outcome_is_replayed_byte_for_byte, every_field_round_trips,
    keys_that_are_split_otherwise_are_apart, names_that_look_alike_are_apart, tenants_are_apart,
};
pub use scan::{
    a_moment_shows_what_was_seen_before_it, a_page_goes_on_after_where_the_last_ended,
    a_page_respects_its_limit, a_run_that_lapsed_under_hold_is_shown_as_held,
    a_scan_shows_every_record_once_in_order, a_scope_shows_its_tenant_only, an_empty_filter_hides_nothing,
    an_operation_or_a_name_shows_its_own_only, load_answers_in_the_order_of_the_ids, load_changes_nothing,
    states_show_their_own_only,
};
pub use stamp::{
    now_is_never_before_what_it_speaks_of, now_never_runs_backwards,
    the_store_stamps_what_a_draft_leaves_open, what_is_stamped_already_stays,
};
pub use swap::{
    a_stale_swap_changes_nothing, a_swap_at_the_expected_version_replaces,
    a_swap_of_a_present_record_must_expect_its_version, a_swap_of_an_absent_record_must_expect_none,
    an_empty_batch_is_answered, of_two_swaps_of_one_record_one_wins, one_stale_swap_does_not_undo_another,
    stale_against_nothing_hands_back_none, stale_hands_back_the_record_that_won,
    swaps_are_answered_in_their_order, versions_grow_over_a_swept_life, versions_grow_with_every_write,
};
pub use sweep::{
    more_left_is_honest, sweep_removes_what_is_past_its_keep, sweep_respects_its_limit,
    sweep_spares_what_is_kept_for_ever, sweep_spares_what_is_within_its_keep,
};
pub use trial::Broken;
