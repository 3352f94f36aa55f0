//! The contract of [`SessionStore`] as checks that any store can be put
//! through; behind the feature `conformance`.
//!
//! Each check wants an empty store of its own: it reads whole lists and whole
//! sums. What a store does not offer, as one without [`SessionStore::leases`],
//! is not applicable and says so. Checks of concurrency race on a runtime with
//! several threads; those of leases wait for some to expire, for a tenth of a
//! second each.
//!
//! # Example
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), session_compaction::conformance::Broken> {
//! use std::sync::Arc;
//! use session_compaction::{MemoryStore, conformance::{CHECKS, Verdict}};
//!
//! let mut passed = 0;
//! for check in CHECKS {
//!     let verdict = check.run(Arc::new(MemoryStore::keep_transcripts())).await?;
//!     match verdict {
//!         Verdict::NotApplicable(what) => println!("{}: it has no {what}", check.name),
//!         _ => passed += 1,
//!     }
//! }
//! assert_eq!(passed, CHECKS.len());
//! # Ok(())
//! # }
//! ```

mod appends;
mod archive;
mod broken;
mod commits;
mod due;
mod fencing;
mod ids;
mod imports;
mod keys;
mod leases;
mod payload;
mod probe;
mod races;
mod removal;
mod rewrites;
mod scopes;
mod since;
mod usage;

use std::{fmt, sync::Arc};

pub use self::broken::Broken;
use self::{
    broken::Stop,
    probe::{Probe, Task},
};
use super::SessionStore;

/// One promise of the contract.
///
/// # Example
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), session_compaction::conformance::Broken> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, conformance::{CHECKS, Verdict}};
///
/// let check = CHECKS.iter().find(|check| check.name == "appends_get_dense_positions").unwrap();
/// assert_eq!(check.run(Arc::new(MemoryStore::new())).await?, Verdict::Passed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Check {
    /// What is promised, as an identifier.
    pub name: &'static str,
    run: fn(Probe) -> Task<()>,
}

impl Check {
    /// Puts a store through the check. The store must be empty.
    ///
    /// # Errors
    ///
    /// [`Broken`] says which promise was broken, what was expected, and what
    /// was seen.
    pub async fn run(&self, store: Arc<dyn SessionStore>) -> Result<Verdict, Broken> {
        let ended = match Probe::new(store) {
            Ok(probe) => (self.run)(probe).await,
            Err(stop) => Err(stop),
        };
        match ended {
            Ok(()) => Ok(Verdict::Passed),
            Err(Stop::NotApplicable(what)) => Ok(Verdict::NotApplicable(what)),
            Err(Stop::Broken(broken)) => Err(broken.of(self.name)),
        }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

/// How a [`Check`] ended that found nothing broken.
///
/// # Example
///
/// ```
/// use session_compaction::conformance::Verdict;
///
/// assert_ne!(Verdict::Passed, Verdict::NotApplicable("leases"));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum Verdict {
    /// The store does not offer what the check is about.
    NotApplicable(&'static str),
    /// The promise is kept.
    Passed,
}

macro_rules! checks {
    ($($module:ident { $($name:ident,)+ })+) => {
        /// All checks.
        pub const CHECKS: &[Check] = &[$($(Check {
            name: stringify!($name),
            run: |probe| Box::pin($module::$name(probe)),
        },)+)+];
    };
}

checks! {
    appends {
        unknown_sessions_are_empty,
        appends_get_dense_positions,
        an_append_leaves_the_revision,
        an_empty_append_creates_the_session,
        a_refused_first_append_creates_nothing,
        sessions_have_positions_of_their_own,
        a_thousand_messages_in_one_call,
        a_message_of_a_megabyte,
        times_do_not_fall,
    }
    ids {
        the_same_message_again_is_a_duplicate,
        a_duplicate_within_one_call,
        the_same_id_with_other_content_stores_nothing,
        another_role_is_other_content,
        a_retry_after_a_lost_answer_adds_nothing,
        a_longer_retry_adds_the_rest,
        a_fresh_id_is_recognized_later,
        ids_are_recognized_below_the_cut,
        ids_are_recognized_among_the_last_1024,
        ids_are_recognized_throughout_the_window,
        ids_belong_to_their_session,
        odd_ids_are_recognized,
    }
    payload {
        messages_come_back_byte_for_byte,
        nul_characters_come_back,
        numbers_keep_their_spelling,
        key_order_and_white_space_are_kept,
        unknown_fields_are_kept,
        all_roles_come_back,
        any_text_comes_back,
        flags_and_times_come_back,
        summaries_come_back,
    }
    since {
        nothing_new_is_an_empty_tail,
        a_tail_has_what_was_appended,
        a_tail_from_zero_is_the_window,
        a_tail_leaves_out_what_was_taken_back,
        a_commit_is_seen_as_a_change,
        a_rewrite_is_seen_as_a_change,
        a_session_that_was_created_again_is_a_change,
        a_reader_that_knows_too_much_reads_all,
        an_unknown_session_is_gone,
        options_and_pauses_are_seen_without_a_revision,
    }
    keys {
        odd_keys_are_kept_apart,
        odd_keys_are_listed_as_given,
        the_longest_keys_are_kept_apart,
        removing_a_key_leaves_its_likes,
        sessions_are_listed_in_byte_order,
        pages_follow_each_other,
        a_page_may_begin_anywhere,
    }
    scopes {
        scopes_are_whole_segments,
        scopes_end_at_their_bytes,
        scopes_are_paged,
        scopes_know_no_wildcards,
        scopes_are_compared_byte_for_byte,
        an_empty_scope_has_no_sessions,
    }
    commits {
        commits_need_the_expected_revision,
        a_stale_commit_changes_nothing,
        a_commit_sets_the_whole_view,
        a_commit_without_view_keeps_the_revision,
        pauses_are_set_and_ended,
        options_stay_until_they_change,
        appends_in_between_do_not_matter,
        everything_can_be_cut,
        carried_messages_stay_over_commits,
        what_was_taken_back_is_left_out,
        ids_of_what_was_taken_back_are_free,
        the_old_view_can_be_committed_again,
    }
    rewrites {
        a_rewrite_creates_the_session,
        rewrites_take_new_positions,
        rewrites_can_be_stale,
        rewrites_free_the_old_ids,
        rewrites_end_a_pause_and_keep_options,
        a_commit_from_before_a_rewrite_is_stale,
        a_refused_rewrite_changes_nothing,
        a_refused_first_rewrite_creates_nothing,
    }
    removal {
        remove_and_append_is_a_new_incarnation,
        removals_are_counted,
        removals_count_what_was_cut,
        a_second_removal_removes_nothing,
        nothing_is_left_of_a_removed_session,
    }
    races {
        concurrent_appends_are_dense,
        concurrent_retries_add_one,
        concurrent_creations_make_one_session,
        concurrent_commits_have_one_winner,
        concurrent_rewrites_have_one_winner,
        concurrent_appends_and_commits_lose_nothing,
        readers_see_the_state_before_or_after,
    }
    archive {
        archives_keep_what_was_cut,
        transcripts_are_read_in_ranges,
        transcripts_have_what_was_taken_back,
        transcripts_have_what_was_rewritten,
        compactions_are_numbered,
        compactions_say_what_they_replaced,
        compactions_are_paged,
        other_commits_are_no_compactions,
        compactions_outlive_a_rewrite,
    }
    imports {
        an_import_keeps_positions_times_and_view,
        an_import_is_a_new_incarnation,
        an_import_refuses_an_existing_session,
        an_import_that_cannot_be_is_refused,
        an_import_keeps_gaps,
        an_import_names_messages,
        an_import_keeps_options_and_pause,
        an_import_keeps_compactions,
        an_import_adds_its_usage,
        an_import_of_nothing_is_a_session,
        imported_ids_are_recognized,
        imported_sessions_go_on,
        imported_sessions_are_due_once_appended_to,
    }
    leases {
        a_session_has_one_holder,
        sessions_are_leased_apart,
        an_unknown_session_cannot_be_claimed,
        a_released_session_can_be_claimed,
        an_expired_session_can_be_claimed,
        a_renewed_lease_lasts,
        a_lapsed_lease_is_not_renewed,
        an_old_release_does_not_end_a_new_lease,
        tokens_rise,
        removal_ends_a_lease,
        concurrent_claims_have_one_winner,
    }
    fencing {
        a_commit_under_a_lease_is_stored,
        a_commit_under_an_expired_lease_is_stale,
        a_commit_under_a_released_lease_is_stale,
        a_commit_under_the_lease_before_is_stale,
        a_commit_under_a_lease_of_another_session_is_stale,
        a_lease_keeps_nobody_from_writing,
        a_lease_outlasts_a_commit,
    }
    due {
        sessions_above_a_limit_are_due,
        each_unit_has_its_limit,
        duplicates_are_not_counted,
        compacted_sessions_are_no_longer_due,
        rewritten_sessions_are_measured_anew,
        marked_sessions_are_due,
        marking_an_unknown_session_does_nothing,
        a_committed_view_ends_a_mark,
        claimed_sessions_are_left_out,
        paused_sessions_are_left_out,
        limits_of_the_session_go_first,
        no_more_than_asked_for_are_claimed,
        two_callers_claim_different_sessions,
        a_claim_of_due_sessions_is_a_lease,
    }
    usage {
        events_of_commits_are_summed,
        events_without_a_commit_are_summed,
        a_stale_commit_records_nothing,
        there_are_as_many_events_as_compactions,
        days_are_summed,
        events_are_paged,
        events_come_back_as_given,
        the_largest_sums_come_first,
        removal_keeps_the_sums_of_the_store,
        sessions_are_counted,
        concurrent_events_are_all_counted,
    }
}

const _: () = assert!(CHECKS.len() >= 80);
