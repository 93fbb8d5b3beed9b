//! A queue and its saved plans, and running statements on it.
//!
//! Plans are saved per backend, schema and statement. A schema is known by its OID, and forgotten
//! when it is renamed or dropped: a saved plan that has to be made anew is made from its text, so
//! after ALTER SCHEMA ... RENAME it would look for the old name, and could find another queue there.

use crate::error::{Error, Result};
use crate::names::Names;
use crate::pg::result_set::ResultSet;
use crate::pg::spi::{self, Rows, SavedPlan, Session, Value};
use crate::pg::{namespace, planner};
use crate::queue::Memories;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Queues that one backend keeps plans for. A plan takes some 20 to 60 kB; a backend that visits
/// more queues than this makes the plans of the least recently used one anew.
const MAX_QUEUES: usize = 16;

/// How a statement's plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planning {
    /// Index scans and nested loops only, whatever the statistics say, and none by the time at which a row can be claimed.
    ByIndex,
    /// Index scans and nested loops only, and the order of the rows comes from an index, not from a sort.
    InIndexOrder,
    /// As PostgreSQL plans any statement.
    ByStatistics,
}

/// The SQL types of parameters, under the names that statements use.
pub(crate) mod types {
    use pgrx::pg_sys::{self, Oid};

    pub(crate) const BOOL: Oid = pg_sys::BOOLOID;
    pub(crate) const INT4: Oid = pg_sys::INT4OID;
    pub(crate) const INT8: Oid = pg_sys::INT8OID;
    pub(crate) const INT8S: Oid = pg_sys::INT8ARRAYOID;
    pub(crate) const JSONB: Oid = pg_sys::JSONBOID;
    pub(crate) const TEXT: Oid = pg_sys::TEXTOID;
    pub(crate) const TEXTS: Oid = pg_sys::TEXTARRAYOID;
    pub(crate) const TIMESTAMPTZ: Oid = pg_sys::TIMESTAMPTZOID;
}

/// One SQL statement of the library; a `static` beside the operation that runs it.
///
/// In `text`, `{q}` stands for the quoted name of the queue's schema and `{key}` for the quoted
/// start of an advisory key, `'<schema>.'`.
pub(crate) struct Statement {
    pub(crate) text: &'static str,
    pub(crate) parameters: &'static [pg_sys::Oid],
    pub(crate) planning: Planning,
}

/// One queue, as a backend knows it.
pub(crate) struct Queue {
    oid: pg_sys::Oid,
    name: Vec<u8>,
    names: Names,
    plans: RefCell<HashMap<*const Statement, Rc<SavedPlan>>>,
    last_used: Cell<u64>,
    memories: Memories,
}

thread_local! {
    static QUEUES: RefCell<HashMap<u32, Rc<Queue>>> = RefCell::new(HashMap::new());
    static USES: Cell<u64> = const { Cell::new(0) };
}

impl Queue {
    /// The queue that lives in the schema of the called function.
    fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> Result<Rc<Self>> {
        let oid = namespace::of_call(fcinfo);
        namespace::upon_change(|| {
            QUEUES.with_borrow_mut(|queues| queues.retain(|_, queue| queue.has_its_name()));
        });
        let uses = USES.get() + 1;
        USES.set(uses);
        let queue = QUEUES.with_borrow_mut(|queues| {
            if let Some(queue) = queues.get(&oid.to_u32()) {
                return Ok(queue.clone());
            }
            let queue = Rc::new(Queue::new(oid)?);
            if queues.len() >= MAX_QUEUES
                && let Some(oldest) =
                    queues.iter().min_by_key(|(_, queue)| queue.last_used.get()).map(|(oid, _)| *oid)
            {
                queues.remove(&oldest);
            }
            queues.insert(oid.to_u32(), queue.clone());
            Ok(queue)
        })?;
        queue.last_used.set(uses);
        Ok(queue)
    }

    fn new(oid: pg_sys::Oid) -> Result<Self> {
        let name = namespace::name(oid).ok_or(Error::FunctionGone)?;
        Ok(Queue {
            oid,
            names: Names::of(&name),
            name,
            plans: RefCell::default(),
            last_used: Cell::new(0),
            memories: Memories::default(),
        })
    }

    fn has_its_name(&self) -> bool {
        namespace::name(self.oid).is_some_and(|name| name == self.name)
    }

    fn plan(&self, statement: &'static Statement) -> Rc<SavedPlan> {
        if let Some(plan) = self.plans.borrow().get(&(statement as *const Statement)) {
            return plan.clone();
        }
        let text = self.names.fill(statement.text);
        let generic = statement.planning != Planning::ByStatistics;
        let plan = Rc::new(SavedPlan::new(&text, statement.parameters, generic));
        self.plans.borrow_mut().insert(statement, plan.clone());
        plan
    }
}

/// A queue, open for statements during one call.
pub(crate) struct Db {
    queue: Rc<Queue>,
    session: Session,
}

impl Db {
    /// Opens the queue of the called function for as long as `body` runs. Each statement finds its tables by name
    /// when its plan is made anew, so a call during which the queue got another name fails (40001): another
    /// queue may have the name by then, and part of the call have gone there.
    pub(crate) fn enter<R>(
        fcinfo: pg_sys::FunctionCallInfo,
        body: impl FnOnce(&Db) -> Result<R>,
    ) -> Result<R> {
        let queue = Queue::of_call(fcinfo)?;
        let db = Db { queue, session: Session::open() };
        let result = planner::during_call(|| body(&db))?;
        if namespace::has_changed() && !db.queue.has_its_name() {
            return Err(Error::QueueRenamed);
        }
        Ok(result)
    }

    /// Runs one statement under a snapshot of its own.
    pub(crate) fn query(&self, statement: &'static Statement, arguments: &[Value<'_>]) -> Rows<'_> {
        let plan = self.plan_for(statement, arguments);
        planner::during_statement(statement.planning, || {
            plan.run(&self.session, statement.parameters, arguments)
        })
    }

    /// The same, with the rows as the result of the call.
    pub(crate) fn query_into(
        &self,
        result: &ResultSet,
        statement: &'static Statement,
        arguments: &[Value<'_>],
    ) {
        let plan = self.plan_for(statement, arguments);
        planner::during_statement(statement.planning, || {
            plan.run_into(&self.session, statement.parameters, arguments, result);
        });
    }

    fn plan_for(&self, statement: &'static Statement, arguments: &[Value<'_>]) -> Rc<SavedPlan> {
        // A wrong type would be undefined behaviour, so this is checked in release builds too.
        assert_eq!(arguments.len(), statement.parameters.len(), "arguments of {}", statement.text);
        for (argument, expected) in arguments.iter().zip(statement.parameters) {
            assert!(
                argument.type_oid().is_none_or(|oid| oid == *expected),
                "argument types of {}",
                statement.text
            );
        }
        self.queue.plan(statement)
    }

    /// What this backend remembers of the queue's heads.
    pub(crate) fn memories(&self) -> &Memories {
        &self.queue.memories
    }

    /// The OID of the queue's schema.
    pub(crate) fn schema(&self) -> pg_sys::Oid {
        self.queue.oid
    }

    /// Runs a script of several statements, with the placeholders of [`Statement`].
    pub(crate) fn run_script(&self, text: &str) {
        spi::run_script(&self.session, &self.queue.names.fill(text));
    }
}
