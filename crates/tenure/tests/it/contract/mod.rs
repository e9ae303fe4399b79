//! The contract: every store and both ways of calling keep it alike.
//!
//! A case is written once, for a [`Place`](place::Place), and runs in fourteen of them.

mod acquire;
mod extend;
mod force;
mod handover;
mod keys;
mod labels;
mod loss;
mod nodes;
mod numbers;
pub(crate) mod place;
mod release;
mod revalidate;
mod run;
mod settings;
pub(crate) mod subject;

/// One test per case, in one place.
macro_rules! cases {
    (($store:expr, $way:expr) $($group:ident: $($case:ident),+;)+) => {
        $(mod $group {
            $(#[test]
            fn $case() {
                crate::contract::$group::$case(&crate::contract::place::Place::new($store, $way));
            })+
        })+
    };
}

/// The contract in one place. A case that is missing here is found as dead code.
macro_rules! contract {
    ($($(#[$when:meta])? $module:ident: $store:ident $(($of:expr))?, $way:ident;)+) => {
        $($(#[$when])? mod $module {
            cases! {
                (
                    crate::contract::place::Store::$store $(($of))?,
                    crate::contract::subject::Way::$way
                )
                acquire:
                    a_free_lock_is_acquired_and_a_released_one_again,
                    a_lock_held_by_another_is_an_outcome_and_no_error,
                    a_client_does_not_enter_its_own_lock_twice,
                    a_lock_released_meanwhile_is_taken_within_the_wait,
                    a_lock_that_is_free_at_the_last_moment_is_taken_and_none_later,
                    a_wait_of_zero_is_one_try,
                    a_wait_without_an_end_ends_with_the_release,
                    a_wait_that_ran_out_carries_how_long_and_who;
                extend:
                    an_extension_raises_the_ttl,
                    an_extension_never_shortens,
                    a_lease_that_is_extended_by_little_is_renewed_in_time,
                    a_ttl_that_is_none_is_refused_before_anything_is_sent,
                    a_lease_that_is_gone_is_not_extended_and_not_made_again;
                force:
                    a_stolen_lock_is_lost_to_its_new_holder,
                    a_lock_released_by_force_is_gone_for_its_holder,
                    a_release_by_force_says_who_held_it;
                handover:
                    a_detached_lease_is_taken_up_by_another_client,
                    a_lease_is_taken_up_while_its_guard_lives,
                    a_lease_that_has_ended_is_not_taken_up,
                    a_token_that_does_not_hold_takes_nothing_up;
                keys:
                    odd_keys_stand_for_locks_as_they_are,
                    what_stands_at_the_lock_is_told;
                labels:
                    the_label_is_host_and_process_unless_set,
                    labels_of_all_sorts_reach_others_as_written;
                loss:
                    a_longest_hold_ends_the_lease_and_its_renewal,
                    a_lease_is_renewed_for_as_long_as_it_is_held,
                    a_lease_that_nobody_renews_is_lost_before_its_ttl_ends,
                    all_who_wait_for_the_loss_are_told_the_same,
                    the_work_s_handle_ends_with_the_release,
                    a_closed_client_holds_nothing_and_answers_so;
                nodes:
                    every_node_that_is_well_votes;
                numbers:
                    each_grant_has_a_larger_number,
                    an_extension_and_a_resumption_keep_the_number;
                release:
                    a_dropped_guard_releases,
                    a_second_release_by_token_is_neither_a_loss_nor_anothers_lock,
                    a_lease_that_ran_out_is_not_released_but_reported,
                    a_release_after_another_took_over_names_it_and_leaves_it_alone;
                revalidate:
                    a_lease_that_ran_out_and_kept_its_key_is_held_again,
                    a_lease_that_ran_out_and_lost_its_key_is_not,
                    a_lease_that_is_lost_for_good_stays_lost,
                    a_lease_that_is_held_stays_held;
                run:
                    the_output_of_the_work_is_that_of_the_run,
                    a_loss_during_the_work_is_reported,
                    a_panic_in_the_work_releases,
                    work_does_not_begin_without_the_lock;
                settings:
                    a_bad_setting_is_returned_by_each_first_call,
                    a_setting_at_its_bound_is_good,
                    one_lock_s_settings_are_not_another_s;
            }
        })+
    };
}

contract! {
    memory_async: Memory, Async;
    memory_blocking: Memory, Blocking;
    #[cfg(feature = "file")] file_async: File, Async;
    #[cfg(feature = "file")] file_blocking: File, Blocking;
    redis_7_0_async: Server(tenure_testkit::ServerKind::Redis70), Async;
    redis_7_0_blocking: Server(tenure_testkit::ServerKind::Redis70), Blocking;
    valkey_8_1_async: Server(tenure_testkit::ServerKind::Valkey81), Async;
    valkey_8_1_blocking: Server(tenure_testkit::ServerKind::Valkey81), Blocking;
    valkey_9_1_async: Server(tenure_testkit::ServerKind::Valkey91), Async;
    valkey_9_1_blocking: Server(tenure_testkit::ServerKind::Valkey91), Blocking;
    three_nodes_async: Quorum(3), Async;
    three_nodes_blocking: Quorum(3), Blocking;
    five_nodes_async: Quorum(5), Async;
    five_nodes_blocking: Quorum(5), Blocking;
}
