//! duroxide's own provider validations hold for the unmodified client on every kind of queue.
//!
//! `DUROXIDE_QUEUE_SUITE` names the kinds, separated by commas: `created`, `adopted`, and
//! `reference` for duroxide-pg's own procedures. Without it, the first two. The usual arguments of `cargo test` work, for example a filter:
//! `cargo test --test provider_suite created::sessions`.

mod complete;
mod factory;
mod validations;

use duroxide_queue_tests::queue::Kind;
use duroxide_queue_tests::server;
use factory::Factory;
use libtest_mimic::{Arguments, Failed, Trial};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use validations::Validation;

/// The module whose validations run a whole runtime, again and again.
const SLOWEST: &str = "race_replay";

const KINDS_VARIABLE: &str = "DUROXIDE_QUEUE_SUITE";

fn main() -> ExitCode {
    server::quiet_logs();
    let mut arguments = Arguments::from_args();
    // Most validations sleep until a lease ends, so more of them than cores is faster. Each needs
    // a few connections, which bounds it.
    arguments.test_threads.get_or_insert(8);

    let mut chosen: Vec<(Kind, Validation)> = chosen_kinds()
        .into_iter()
        .flat_map(|kind| validations::all().into_iter().map(move |v| (kind, v)))
        .collect();
    // Two of them take 20 s each: begun last, they would run alone.
    chosen.sort_by_key(|(_, validation)| validation.module != SLOWEST);

    let complete = Trial::test("the_list_is_complete", || complete::check().map_err(Failed::from));
    let trials = chosen.into_iter().map(|(kind, v)| trial(kind, v));
    let trials = trials.chain([complete]).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(kind: Kind, validation: Validation) -> Trial {
    let name = format!("{}::{}::{}", kind.name(), validation.module, validation.name);
    Trial::test(name, move || {
        for left in (0..validation.tries()).rev() {
            let once = || run_once(kind, &validation);
            match std::panic::catch_unwind(AssertUnwindSafe(once)) {
                Err(panic) if left == 0 => std::panic::resume_unwind(panic),
                Err(_) => {
                    eprintln!("once more, on a new queue: this one measures time, see above what came of it")
                }
                Ok(result) => return result.map_err(Failed::from),
            }
        }
        unreachable!("the last try returns or fails")
    })
}

/// As `#[tokio::test]` does it, which is how duroxide and duroxide-pg run these.
fn run_once(kind: Kind, validation: &Validation) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let factory = Factory::new(kind);
        (validation.run)(&factory).await;
        factory.clean_up().await;
    });
    Ok(())
}

fn chosen_kinds() -> Vec<Kind> {
    let Ok(names) = std::env::var(KINDS_VARIABLE) else {
        return Kind::OURS.to_vec();
    };
    names
        .split(',')
        .map(|name| {
            Kind::ALL
                .into_iter()
                .find(|kind| kind.name() == name.trim())
                .unwrap_or_else(|| panic!("{KINDS_VARIABLE}={names}: no kind of queue is named {name:?}"))
        })
        .collect()
}
