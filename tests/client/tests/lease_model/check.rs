//! Runs the checker over every state of a fleet, or until it has found what is looked for.

use crate::fleet::Fleet;
use crate::guards::Guard;
use crate::properties;
use crate::protocol::{Action, Protocol};
use crate::state::State;
use stateright::{Checker, HasDiscoveries, Model, Path};

/// Everything that must always hold does, in exactly `states` states, and `sights` are among them.
pub fn holds(protocol: Protocol, states: usize, sights: &[&'static str]) {
    breaks_only(protocol, states, &[], sights);
}

/// The same, but for `broken`, each of which does not hold.
pub fn breaks_only(protocol: Protocol, states: usize, broken: &[&'static str], sights: &[&'static str]) {
    let checker = protocol.checker().spawn_bfs().join();

    for name in properties::always() {
        match checker.discovery(name) {
            Some(path) if !broken.contains(&name) => panic!("not so: {name}\n{}", told(path)),
            None if broken.contains(&name) => panic!("after all it is so that {name}"),
            _ => {}
        }
    }
    for sight in sights {
        assert!(checker.discovery(sight).is_some(), "never seen: {sight}");
    }
    assert_eq!(checker.unique_state_count(), states, "the model has another size than is written here");
}

/// Without `guards`, `property` does not hold.
pub fn finds(fleet: Fleet, guards: &[Guard], property: &'static str) {
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = Protocol::without(fleet, guards).checker().finish_when(found).spawn_bfs().join();

    let states = checker.unique_state_count();
    match checker.discovery(property) {
        Some(path) => println!("without {guards:?}, not so: {property}\n{}", told(path)),
        None => panic!("without {guards:?} it is still so in {states} states that {property}"),
    }
}

fn told(path: Path<State, Action>) -> String {
    path.into_actions().iter().map(|action| format!("  {action:?}\n")).collect()
}
