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
                    a_busy_lock_is_a_result_and_not_an_error,
                    a_lock_is_not_reentrant,
                    a_lock_released_during_the_wait_is_acquired,
                    a_lock_free_at_the_last_moment_is_acquired_and_none_later,
                    a_wait_of_zero_is_one_try,
                    an_unlimited_wait_ends_with_the_release,
                    a_wait_that_timed_out_reports_its_length_and_the_holder;
                extend:
                    an_extension_raises_the_ttl,
                    an_extension_never_shortens,
                    a_lease_extended_briefly_is_renewed_in_time,
                    an_invalid_ttl_is_refused_before_anything_is_sent,
                    a_lost_lease_is_neither_extended_nor_recreated;
                force:
                    a_stolen_lock_is_lost_to_its_new_holder,
                    a_lock_released_by_force_is_lost_to_its_holder,
                    force_release_names_the_holder;
                handover:
                    a_detached_lease_is_resumed_by_another_client,
                    a_lease_is_resumed_while_its_guard_lives,
                    a_lease_that_has_ended_is_not_resumed,
                    a_token_that_holds_nothing_resumes_nothing;
                keys:
                    odd_keys_are_used_exactly_as_given,
                    inspect_reports_what_is_at_the_key;
                labels:
                    the_label_is_host_and_process_unless_set,
                    labels_of_all_kinds_are_shown_as_written;
                loss:
                    max_hold_ends_the_lease_and_its_renewal,
                    a_lease_is_renewed_for_as_long_as_it_is_held,
                    a_lease_without_renewal_is_lost_before_its_ttl_ends,
                    all_callers_that_await_the_loss_get_the_same_reason,
                    the_handle_of_the_work_ends_with_the_release,
                    a_closed_client_holds_nothing_and_says_so;
                nodes:
                    every_healthy_node_votes;
                numbers:
                    each_grant_has_a_larger_number,
                    an_extension_and_a_resumption_keep_the_number;
                release:
                    a_dropped_guard_releases,
                    a_second_release_by_token_is_neither_a_loss_nor_contention,
                    releasing_an_expired_lease_is_reported,
                    a_release_after_a_takeover_names_the_new_holder_and_leaves_it_alone;
                revalidate:
                    an_expired_lease_that_kept_its_key_is_revalidated,
                    an_expired_lease_that_lost_its_key_is_not_revalidated,
                    a_lease_lost_for_another_reason_is_not_revalidated,
                    revalidating_a_held_lease_keeps_it;
                run:
                    run_returns_the_output_of_the_work,
                    a_loss_during_the_work_is_reported,
                    a_panic_in_the_work_releases,
                    work_does_not_begin_without_the_lock;
                settings:
                    a_bad_setting_is_returned_by_each_first_call,
                    a_setting_at_its_bound_is_accepted,
                    settings_of_one_lock_do_not_affect_another;
            }
        })+
    };
}

contract! {
    memory_async: Memory, Async;
    memory_blocking: Memory, Blocking;
    #[cfg(feature = "sqlite")] file_async: File, Async;
    #[cfg(feature = "sqlite")] file_blocking: File, Blocking;
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
