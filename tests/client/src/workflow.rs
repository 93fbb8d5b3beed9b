//! One order that goes through everything a workflow can do: activities, a timer, an external
//! event, a sub-orchestration and a continue-as-new.

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, ClientError, EventKind, OrchestrationContext, OrchestrationRegistry,
};
use std::sync::Arc;
use std::time::Duration;

/// The orchestration's name.
pub const ORCHESTRATION: &str = "Order";
/// What it is started with.
pub const INPUT: &str = "3 books";
/// The external event that it waits for.
pub const APPROVAL: &str = "approval";
/// Who approves: the data of that event.
pub const APPROVER: &str = "Ada";
/// The activity that takes long.
pub const CHARGE: &str = "charge";
/// What the order must come to.
pub const RESULT: &str =
    "3 books reserved, 36.00 charged, approved by Ada, packed, label printed, receipt sent";

const SHIPPING: &str = "Shipping";
const FIRST_EXECUTION: u64 = 1;

/// How long the steps take.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The activity `charge`.
    pub charge: Duration,
    /// Every other activity.
    pub activity: Duration,
    /// The timer.
    pub timer: Duration,
}

/// Is told the name of each activity whose code begins to run.
pub type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// The sub-orchestration's instance of an order.
pub fn shipping_of(order: &str) -> String {
    format!("{order}-shipping")
}

/// The activities of an order.
pub fn activities(pace: Pace, observer: Observer) -> ActivityRegistry {
    let activity = |name: &'static str, duration: Duration, answer: fn(&str) -> String| {
        let observer = Arc::clone(&observer);
        move |_: ActivityContext, input: String| {
            let observer = Arc::clone(&observer);
            async move {
                observer(name);
                tokio::time::sleep(duration).await;
                Ok(answer(&input))
            }
        }
    };
    let step = pace.activity;
    ActivityRegistry::builder()
        .register("reserve", activity("reserve", step, |goods| format!("{goods} reserved")))
        .register(CHARGE, activity(CHARGE, pace.charge, |sum| format!("{sum} charged")))
        .register("pack", activity("pack", step, |_| "packed".into()))
        .register("label", activity("label", step, |_| "label printed".into()))
        .register("receipt", activity("receipt", step, |_| "receipt sent".into()))
        .build()
}

/// The orchestrations of an order.
pub fn orchestrations(pace: Pace) -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register(ORCHESTRATION, move |ctx: OrchestrationContext, input: String| async move {
            if ctx.execution_id() == FIRST_EXECUTION {
                let shipped = sell(&ctx, input, pace.timer).await?;
                return ctx.continue_as_new(shipped).await;
            }
            let receipt = ctx.schedule_activity("receipt", input.clone()).await?;
            Ok(format!("{input}, {receipt}"))
        })
        .register(SHIPPING, |ctx: OrchestrationContext, order: String| async move {
            let steps =
                vec![ctx.schedule_activity("pack", order.clone()), ctx.schedule_activity("label", order)];
            let done: Result<Vec<String>, String> = ctx.join(steps).await.into_iter().collect();
            Ok(done?.join(", "))
        })
        .build()
}

/// The first execution: everything up to the shipped parcel.
async fn sell(ctx: &OrchestrationContext, goods: String, cooling_off: Duration) -> Result<String, String> {
    let reserved = ctx.schedule_activity("reserve", goods).await?;
    let charged = ctx.schedule_activity(CHARGE, "36.00").await?;
    ctx.schedule_timer(cooling_off).await;
    let approver = ctx.schedule_wait(APPROVAL).await;
    let order = ctx.instance_id();
    let shipped = ctx.schedule_sub_orchestration_with_id(SHIPPING, shipping_of(&order), order).await?;
    Ok(format!("{reserved}, {charged}, approved by {approver}, {shipped}"))
}

/// Whether the order waits for its approval. An event raised earlier would be dropped.
///
/// # Errors
///
/// What the client says, if it cannot read the history.
pub async fn waits_for_approval(client: &Client, order: &str) -> Result<bool, ClientError> {
    if !client.list_all_instances().await?.iter().any(|i| i == order) {
        return Ok(false);
    }
    let history = client.read_execution_history(order, FIRST_EXECUTION).await?;
    Ok(history
        .iter()
        .any(|event| matches!(&event.kind, EventKind::ExternalSubscribed { name } if name == APPROVAL)))
}
